<?php
// Takes the steps of demo.ts with curl's functions or with streams. Arguments: the library, the origin.
[, $library, $origin] = $argv;
$body = str_repeat('u', 200_000);
$reports = [];

/** @return array{int, array<string, string>, string} status, last value of each field, body */
function by_curl(string $method, string $url, array $fields = [], ?string $body = null, array $options = []): array
{
    global $jar;
    $curl = curl_init($url);
    $seen = [];
    curl_setopt_array($curl, $options + [
        CURLOPT_CUSTOMREQUEST => $method,
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_FOLLOWLOCATION => true,
        CURLOPT_COOKIEFILE => $jar,
        CURLOPT_COOKIEJAR => $jar,
        CURLOPT_NOBODY => $method === 'HEAD',
        CURLOPT_ENCODING => '',
        CURLOPT_HTTPHEADER => $fields,
        CURLOPT_HEADERFUNCTION => function ($_, string $line) use (&$seen): int {
            $parts = explode(':', $line, 2);
            if (count($parts) === 2) $seen[strtolower($parts[0])] = trim($parts[1]);
            return strlen($line);
        },
    ] + ($body === null ? [] : [CURLOPT_POSTFIELDS => $body]));
    $text = curl_exec($curl);
    $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
    curl_close($curl);
    return [$status, $seen, (string) $text];
}

function by_stream(string $method, string $url, array $fields = [], ?string $body = null): array
{
    $http = ['method' => $method, 'header' => $fields, 'ignore_errors' => true, 'protocol_version' => 1.1];
    if ($body !== null) $http['content'] = $body;
    $text = file_get_contents($url, false, stream_context_create(['http' => $http]));
    $status = 0;
    $seen = [];
    foreach ($http_response_header as $line) {
        if (preg_match('#^HTTP/1\.\d (\d+)#', $line, $found)) $status = (int) $found[1];
        $parts = explode(':', $line, 2);
        if (count($parts) === 2) $seen[strtolower($parts[0])] = trim($parts[1]);
    }
    return [$status, $seen, $text];
}

function send(...$arguments): array
{
    global $library;
    return $library === 'curl' ? by_curl(...$arguments) : by_stream(...$arguments);
}

function text(array $reply): string
{
    return "$reply[0] $reply[2]";
}

$jar = tempnam(sys_get_temp_dir(), 'jar');
$plain = ['Content-Type: application/octet-stream'];
// Without an empty Expect, curl would send one.
$small = $library === 'curl' ? [...$plain, 'Expect:'] : $plain;
$reports['get'] = text(send('GET', "$origin/echo?q=1"));
$reports['encoded'] = text(send('GET', "$origin/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y"));
$reports['redirect'] = text(send('GET', "$origin/redirect?status=302&to=/folder"));
$reports['upload'] = text(send('POST', "$origin/upload", $small, $body));
foreach (['length', 'chunked'] as $framing) {
    [$status, , $got] = send('GET', "$origin/download/$framing");
    $reports["download $framing"] = $status . ' ' . strlen($got) . ' ' . substr($got, -3);
}
[$status, $seen, $got] = send('HEAD', "$origin/download/length");
$reports['head'] = "$status {$seen['content-length']} " . strlen($got);
[$status, , $got] = send('DELETE', "$origin/none");
$reports['no content'] = "$status " . strlen($got);
[, $seen] = send('GET', "$origin/tagged");
[$status, $seen, $got] = send('GET', "$origin/tagged", ["If-None-Match: {$seen['etag']}"]);
$reports['not modified'] = "$status {$seen['etag']} " . strlen($got);
[$status, $seen, $got] = send('GET', "$origin/range", ['Range: bytes=5-9']);
$reports['range'] = "$status {$seen['content-range']} $got";
$reports['refused'] = text(send('POST', "$origin/refuse", $small, $body));
[$status, $seen, $got] = send('GET', "$origin/busy");
$reports['busy'] = "$status {$seen['retry-after']} $got";

if ($library === 'curl') {
    $reports['redirect 307'] = text(by_curl('PUT', "$origin/redirect?status=307&to=/upload", $plain, $body));
    $reports['cookies'] = text(by_curl('GET', "$origin/cookies/set"));
    $reports['gzip'] = text(by_curl('GET', "$origin/gzip"));
    $reports['expect'] = text(by_curl('POST', "$origin/upload", [...$plain, 'Expect: 100-continue'], $body));
    $left = $body;
    $reports['upload chunked'] = text(by_curl('POST', "$origin/upload", ['Transfer-Encoding: chunked', ...$plain], null, [
        CURLOPT_UPLOAD => true,
        CURLOPT_READFUNCTION => function ($_, $file, int $length) use (&$left): string {
            $part = substr($left, 0, $length);
            $left = substr($left, $length);
            return $part;
        },
    ]));
    $curl = curl_init();
    $connections = 0;
    for ($i = 0; $i < 3; $i++) {
        curl_setopt_array($curl, [CURLOPT_URL => "$origin/echo", CURLOPT_RETURNTRANSFER => true]);
        curl_exec($curl);
        $connections += curl_getinfo($curl)['num_connects'] ?? curl_getinfo($curl, CURLINFO_NUM_CONNECTS);
    }
    $reports['keep-alive'] = "3 requests, $connections connection";
}
echo json_encode($reports, JSON_UNESCAPED_SLASHES);
