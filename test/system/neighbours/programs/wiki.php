<?php
// As wikis do, it knows one spelling of the address of a page, and redirects from all others.
$path = parse_url('http://any' . $_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === '/wiki/index.php') {
  header('Location: http://' . $_SERVER['HTTP_HOST'] . '/wiki/index.php/', true, 301);
  exit;
}
setcookie('one', 'a', ['samesite' => 'Lax']);
setcookie('two', 'b c');
header('Content-Type: application/json');
echo json_encode([
  'method' => $_SERVER['REQUEST_METHOD'],
  'uri' => $_SERVER['REQUEST_URI'],
  'path' => $_SERVER['PATH_INFO'] ?? null,
  'query' => $_GET,
  'form' => $_POST,
  'files' => array_map(fn ($file) => [$file['name'], $file['size'], sha1_file($file['tmp_name'])], $_FILES),
  'cookies' => $_COOKIE,
]);
