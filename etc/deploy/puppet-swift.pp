# puppet-swift: classes that add shardmw to the proxies and to the internal
# clients of Swift's daemons. Copy this file into the main manifests of the
# environment, as ENVIRONMENT/manifests/shardmw.pp. It cannot be in a module:
# swift::proxy requires a class named swift::proxy::NAME for each NAME in its
# pipeline, and modules other than swift may not define one.
#
# Then declare the classes, each on the nodes that have its file:
#
#   swift::proxy::shardmw           proxy-server.conf
#   shardmw::internal_client        internal-client.conf
#   shardmw::object_expirer         object-expirer.conf
#   shardmw::container_reconciler   container-reconciler.conf
#   shardmw::resharder              one or several nodes that have the rings
#
# The pipelines are in puppet-swift.yaml. Do not set these options with
# swift::config::swift_proxy_config: in puppet-swift 28.0.0, swift::config also
# writes them to account-server.conf.
#
# doc/deploying.md says what to run, and what these classes do not cover.

# The package, from wheels in a folder of the node. pip asks no index, so the
# folder must also have wheels of orjson and click, unless packages of the
# distribution provide them. Swift's own packages are installed first, or pip
# would look for a wheel of Swift.
class shardmw (
  String[1] $version        = '0.1.0',
  String[1] $wheels         = '/opt/shardmw',
  # Debian and Ubuntu need this option; pip before 23.0.1 does not know it.
  Array[String[1]] $options = ['--break-system-packages'],
) {
  package { 'shardmw':
    ensure          => $version,
    provider        => 'pip3',
    install_options => ['--no-index', '--find-links', $wheels] + $options,
    tag             => ['openstack', 'swift-package'],
  }
  Package<| tag == 'swift-package' and title != 'shardmw' |>
  -> Package['shardmw']
}

# Options of the filter go here, too: see proxy-server.conf-sample.
class swift::proxy::shardmw {
  include shardmw

  swift_proxy_config {
    'filter:shardmw/use':        value => 'egg:shardmw#shardmw';
    # No sharded containers until all proxies and internal clients have the
    # filter. Then change this to "ensure => absent", here and below: without
    # this line, Puppet would leave the option in the file.
    'filter:shardmw/max_shards': value => '0';
  }
}

class shardmw::internal_client {
  include shardmw

  swift_internal_client_config {
    'filter:shardmw/use':                    value => 'egg:shardmw#shardmw';
    'filter:shardmw/max_shards':             value => '0';
    # Keep this: the daemons act on what they find in a listing.
    'filter:shardmw/listing_kept_megabytes': value => '0';
  }
}

class shardmw::object_expirer {
  include shardmw

  swift_object_expirer_config {
    'filter:shardmw/use':                    value => 'egg:shardmw#shardmw';
    'filter:shardmw/max_shards':             value => '0';
    'filter:shardmw/listing_kept_megabytes': value => '0';
  }
}

class shardmw::container_reconciler {
  include shardmw

  swift_container_reconciler_config {
    'filter:shardmw/use':                    value => 'egg:shardmw#shardmw';
    'filter:shardmw/max_shards':             value => '0';
    'filter:shardmw/listing_kept_megabytes': value => '0';
  }
}

# The optional filter of container servers, for faster listings. Declare it as
#
#   swift::storage::filter::shardmw_container { 'container': }
#
# and name it left of container-server in the pipeline of the container server
# (swift::storage::all::container_pipeline), with an underscore: puppet-swift
# makes the name of a defined type of it.
define swift::storage::filter::shardmw_container {
  include shardmw

  swift_container_config {
    'filter:shardmw_container/use': value => 'egg:shardmw#shardmw_container';
  }
}

# The daemon, with the sample configuration and the systemd unit that the wheel
# has installed. To set options, copy the sample into a module, and pass its
# puppet:/// URL as $conf.
class shardmw::resharder (
  String[1] $samples = '/usr/local/share/doc/shardmw',
  String[1] $conf    = "${samples}/shardmw-resharder.conf-sample",
) {
  include swift::deps
  include shardmw
  # The sample reads the memcached servers from /etc/swift/memcache.conf.
  include swift::memcache

  file { '/etc/swift/shardmw-resharder.conf':
    source  => $conf,
    owner   => 'root',
    group   => 'swift',
    mode    => '0640',
    require => [Package['shardmw'], Anchor['swift::config::begin']],
  }
  file { '/etc/systemd/system/shardmw-resharder.service':
    source  => "${samples}/shardmw-resharder.service",
    require => Package['shardmw'],
  }
  service { 'shardmw-resharder':
    ensure    => 'running',
    enable    => true,
    subscribe => [
      Package['shardmw'],
      File['/etc/swift/shardmw-resharder.conf'],
      File['/etc/systemd/system/shardmw-resharder.service'],
    ],
    require   => Anchor['swift::config::end'],
  }
}
