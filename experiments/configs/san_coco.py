"""SAN's training on COCO: that of NG-SAN, its paper's section 5.1."""

from configs.ngsan_coco import get_config

__all__ = ["get_config"]
