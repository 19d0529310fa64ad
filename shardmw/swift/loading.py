# SPDX-License-Identifier: Apache-2.0
"""Learn the pipeline from Swift's loader, and answer its requests for info.

The loader sets attributes of the apps of a pipeline, from left to right. It
sets the attribute with the proxy app last. Swift's filters send requests for
container and account info past all filters, to the app in another one of these
attributes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable


class LoadedFilter(ABC):
    """A filter that is told its pipeline."""

    @abstractmethod
    def pipeline_is_known(self, pipeline: list, info_app: Callable) -> None:
        """Take note of the pipeline. It is called once, before any request.

        :param pipeline: all apps, from left to right, the proxy app last
        :param info_app: the app to which requests for info go
        """

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
