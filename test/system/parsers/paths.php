<?php
[$path] = explode('?', $_SERVER['REQUEST_URI'], 2);
$parsed = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
echo rawurldecode($path), "\n", $_SERVER['PHP_SELF'], is_string($parsed) ? "\n" . rawurldecode($parsed) : '';
