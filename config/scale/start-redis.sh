#!/bin/sh
# Starts a Redis or a sentinel with a configuration file that it can rewrite, so that a failover survives a restart.
#
#   start-redis.sh FILE FOLDER [LINE]... -- [OPTION]...
#
# At the first start, FILE is copied to FOLDER with each LINE appended. Each OPTION is passed to redis-server.
set -eu
file=$1
own=$2/$(basename "$1")
shift 2
added=
while [ "$1" != -- ]; do
  added="$added$1
"
  shift
done
shift
if [ ! -f "$own" ]; then
  { cat "$file"; printf %s "$added"; } >"$own.new"
  mv "$own.new" "$own"
fi
exec redis-server "$own" "$@"
