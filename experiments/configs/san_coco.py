"""SAN's training on COCO: that of NG-SAN, its paper's Section 5.1."""

from configs.ngsan_coco import get_config

__all__ = ["get_config"]
