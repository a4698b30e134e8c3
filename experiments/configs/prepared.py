"""Features of photos, at a size that fits a few thousand of them."""

from configs.coco_objects import get_config

__all__ = ["get_config"]
