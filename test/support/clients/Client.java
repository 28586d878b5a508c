import java.io.ByteArrayInputStream;
import java.net.CookieManager;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.net.http.WebSocket;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;

/**
 * Takes the steps of demo.ts with java.net.http, which first offers HTTP/2 by `Upgrade: h2c`. Arguments: the origin, and
 * `websocket` if only this step is wanted.
 */
class Client {
  static final byte[] BODY = "u".repeat(200_000).getBytes();
  static final HttpClient CLIENT =
      HttpClient.newBuilder()
          .followRedirects(HttpClient.Redirect.NORMAL)
          .cookieHandler(new CookieManager())
          .build();
  static String origin;

  static HttpResponse<String> ask(String method, String path, BodyPublisher body, boolean expects, String... fields)
      throws Exception {
    HttpRequest.Builder request =
        HttpRequest.newBuilder(URI.create(origin + path)).method(method, body).expectContinue(expects);
    if (fields.length > 0) request.headers(fields);
    return CLIENT.send(request.build(), BodyHandlers.ofString());
  }

  static HttpResponse<String> ask(String method, String path, String... fields) throws Exception {
    return ask(method, path, BodyPublishers.noBody(), false, fields);
  }

  static String text(HttpResponse<String> reply) {
    return reply.statusCode() + " " + reply.body();
  }

  static String field(HttpResponse<String> reply, String name) {
    return reply.headers().firstValue(name).orElse("none");
  }

  /** Older releases send this field in the handshake. Newer ones let the program set it, if a property allows it. */
  static WebSocket.Builder handshake() {
    WebSocket.Builder builder = CLIENT.newWebSocketBuilder();
    boolean isOld = System.getProperty("jdk.httpclient.allowRestrictedHeaders") != null;
    return isOld ? builder.header("Content-Length", "0") : builder;
  }

  static String echo(String text) throws Exception {
    CompletableFuture<String> received = new CompletableFuture<>();
    WebSocket.Listener listener =
        new WebSocket.Listener() {
          @Override
          public CompletionStage<?> onText(WebSocket socket, CharSequence data, boolean last) {
            received.complete(data.toString());
            return null;
          }

          @Override
          public void onError(WebSocket socket, Throwable error) {
            received.completeExceptionally(error);
          }
        };
    WebSocket socket =
        handshake().buildAsync(URI.create(origin.replace("http:", "ws:") + "/ws"), listener).join();
    socket.sendText(text, true).join();
    String answer = received.join();
    socket.sendClose(WebSocket.NORMAL_CLOSURE, "").join();
    return "echo of " + answer;
  }

  public static void main(String[] arguments) throws Exception {
    origin = arguments[0];
    Map<String, String> reports = new LinkedHashMap<>();
    if (arguments.length == 1) steps(reports);
    reports.put("websocket", echo("hello"));
    System.out.println(
        reports.entrySet().stream()
            .map(report -> quoted(report.getKey()) + ":" + quoted(report.getValue()))
            .collect(Collectors.joining(",", "{", "}")));
    System.exit(0);
  }

  static void steps(Map<String, String> reports) throws Exception {
    BodyPublisher whole = BodyPublishers.ofByteArray(BODY);
    BodyPublisher pieces = BodyPublishers.ofInputStream(() -> new ByteArrayInputStream(BODY));
    reports.put("get", text(ask("GET", "/echo?q=1")));
    reports.put("encoded", text(ask("GET", "/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y")));
    reports.put("redirect", text(ask("GET", "/redirect?status=302&to=/folder")));
    reports.put("redirect 307", text(ask("PUT", "/redirect?status=307&to=/upload", whole, false)));
    reports.put("cookies", text(ask("GET", "/cookies/set")));
    reports.put("upload", text(ask("POST", "/upload", whole, false)));
    reports.put("upload chunked", text(ask("POST", "/upload", pieces, false)));
    reports.put("expect", text(ask("POST", "/upload", whole, true)));
    for (String framing : new String[] {"length", "chunked"}) {
      HttpResponse<String> reply = ask("GET", "/download/" + framing);
      String got = reply.body();
      reports.put(
          "download " + framing, reply.statusCode() + " " + got.length() + " " + got.substring(got.length() - 3));
    }
    HttpResponse<String> head = ask("HEAD", "/download/length");
    reports.put("head", head.statusCode() + " " + field(head, "content-length") + " " + head.body().length());
    HttpResponse<String> none = ask("DELETE", "/none");
    reports.put("no content", none.statusCode() + " " + none.body().length());
    HttpResponse<String> known = ask("GET", "/tagged", "If-None-Match", field(ask("GET", "/tagged"), "etag"));
    reports.put("not modified", known.statusCode() + " " + field(known, "etag") + " " + known.body().length());
    HttpResponse<String> part = ask("GET", "/range", "Range", "bytes=5-9");
    reports.put("range", part.statusCode() + " " + field(part, "content-range") + " " + part.body());
    reports.put("refused", text(ask("POST", "/refuse", whole, false)));
    HttpResponse<String> busy = ask("GET", "/busy");
    reports.put("busy", busy.statusCode() + " " + field(busy, "retry-after") + " " + busy.body());
    String events =
        CLIENT
            .send(HttpRequest.newBuilder(URI.create(origin + "/events")).build(), BodyHandlers.ofLines())
            .body()
            .filter(line -> line.startsWith("data: "))
            .limit(3)
            .map(line -> line.substring(6))
            .collect(Collectors.joining(" "));
    reports.put("events", events);
  }

  static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"") + '"';
  }
}
