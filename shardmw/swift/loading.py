# SPDX-License-Identifier: Apache-2.0
"""What Swift's loader tells the apps of a pipeline.

The loader sets attributes of each app that has been loaded, from left to
right, and of each app the name of the proxy app last. Filters send requests
for container and account info past all filters, to the app that is in one of
these attributes.
"""

from collections.abc import Callable


class LoadedFilter:
    """A filter that is told its pipeline."""

    def pipeline_is_known(self, pipeline: list, info_app: Callable) -> None:
        """Take note of the pipeline; called once, before any request.

        :param pipeline: all apps, from left to right, the proxy app last
        :param info_app: the app to which requests for info go
        """
        raise NotImplementedError

    @property
    def _pipeline_final_app(self) -> Callable:
        """Return the proxy app."""
        return self._final_app

    @_pipeline_final_app.setter
    def _pipeline_final_app(self, final_app: Callable) -> None:
        self._final_app = final_app
        self.pipeline_is_known(
            self._pipeline, self._pipeline_request_logging_app
        )


class InfoTarget:
    """An app to which requests for info go."""

    @property
    def _pipeline_request_logging_app(self) -> 'InfoTarget':
        return self


def send_info_requests_to(info_app: InfoTarget, pipeline: list) -> None:
    """Have the filters of a pipeline send requests for info to an app."""
    for app in pipeline:
        app._pipeline_request_logging_app = info_app


def pipeline_of(app: Callable) -> list:
    """Return the pipeline of an app that Swift's loader has made."""
    return app._pipeline
