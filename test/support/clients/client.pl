# Takes the steps of demo.ts with LWP. Argument: the origin.
use strict;
use warnings;
use HTTP::Cookies;
use HTTP::Request;
use JSON::PP;
use LWP::UserAgent;

my ($origin) = @ARGV;
my $body = 'u' x 200_000;
my %reports;
my $agent = LWP::UserAgent->new(keep_alive => 1, cookie_jar => HTTP::Cookies->new);
push @{ $agent->requests_redirectable }, 'PUT';

sub ask {
    my ($method, $path, $fields, $content) = @_;
    return $agent->request(HTTP::Request->new($method, $origin . $path, $fields // [], $content));
}

sub text {
    my ($reply) = @_;
    return $reply->code . ' ' . $reply->decoded_content;
}

sub pieces {
    my $left = $body;
    return sub { return substr($left, 0, 30_000, '') };
}

$reports{get} = text(ask('GET', '/echo?q=1'));
$reports{encoded} = text(ask('GET', '/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y'));
$reports{redirect} = text(ask('GET', '/redirect?status=302&to=/folder'));
$reports{'redirect 307'} = text(ask('PUT', '/redirect?status=307&to=/upload', [], $body));
$reports{cookies} = text(ask('GET', '/cookies/set'));
$reports{upload} = text(ask('POST', '/upload', [], $body));
$reports{'upload chunked'} = text(ask('POST', '/upload', [], pieces()));
$reports{expect} = text(ask('POST', '/upload', [ Expect => '100-continue' ], $body));
for my $framing ('length', 'chunked') {
    my $reply = ask('GET', "/download/$framing");
    $reports{"download $framing"} = $reply->code . ' ' . length($reply->content) . ' ' . substr($reply->content, -3);
}
my $head = ask('HEAD', '/download/length');
$reports{head} = join ' ', $head->code, $head->header('Content-Length'), length $head->content;
my $none = ask('DELETE', '/none');
$reports{'no content'} = $none->code . ' ' . length $none->content;
my $known = ask('GET', '/tagged', [ 'If-None-Match' => ask('GET', '/tagged')->header('ETag') ]);
$reports{'not modified'} = join ' ', $known->code, $known->header('ETag'), length $known->content;
my $part = ask('GET', '/range', [ Range => 'bytes=5-9' ]);
$reports{range} = join ' ', $part->code, $part->header('Content-Range'), $part->content;
$reports{gzip} = text(ask('GET', '/gzip', [ 'Accept-Encoding' => 'gzip' ]));
$reports{refused} = text(ask('POST', '/refuse', [], $body));
my $busy = ask('GET', '/busy');
$reports{busy} = join ' ', $busy->code, $busy->header('Retry-After'), $busy->content;
$agent = LWP::UserAgent->new(keep_alive => 1);
ask('GET', '/echo') for 1 .. 2;
# LWP counts the replies of each connection.
my $replies = ask('GET', '/echo')->header('Client-Response-Num');
$reports{'keep-alive'} = "$replies requests, 1 connection";
my @events;
my $buffer = '';
$agent->get("$origin/events", ':content_cb' => sub {
    $buffer .= $_[0];
    @events = $buffer =~ /^data: (.*)\n/mg;
    die "enough\n" if @events == 3;
});
$reports{events} = join ' ', @events;
print JSON::PP->new->canonical->encode(\%reports);
