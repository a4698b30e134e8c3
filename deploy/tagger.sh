#!/bin/sh
# Writes captions into the metadata of photos by exif-ai, a tagger of npm, that asks our
# server; ADDRESS and TOKEN are those of `keras-caption serve`:
#   keras-caption serve ngsan_coco --detector yolox_nano
#   deploy/tagger.sh holidays/*.jpg
set -eu
export OPENAI_BASE_URL="${ADDRESS:-http://localhost:8501}/v1"
export OPENAI_API_KEY="${TOKEN:-none}"
for photo; do
    npx exif-ai -i "$photo" -a openai -m ngsan_coco
done
