"""The intake of a running application, as a dependency of endpoints."""

from typing import Annotated

from pullback_service.reports.upload_queue import UploadQueue
from pullback_service.runtime import instance_of

KnownIntake = Annotated[UploadQueue, instance_of(UploadQueue)]
