<?php
while (($line = fgets(STDIN)) !== false) {
  parse_str(rtrim($line, "\n"), $read);
  echo json_encode($read[$argv[1]] ?? null, JSON_INVALID_UTF8_SUBSTITUTE | JSON_PARTIAL_OUTPUT_ON_ERROR), "\n";
}
