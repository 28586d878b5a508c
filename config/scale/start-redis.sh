#!/bin/sh
# Starts a Redis or a sentinel on a file that it may rewrite, so that who is the primary outlives a restart.
#
#   start-redis.sh FILE FOLDER [LINE]... -- [OPTION]...
#
# FILE is copied into FOLDER the first time, with every LINE added. OPTIONs are given to redis-server.
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
