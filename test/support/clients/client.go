// Takes the steps of demo.ts with net/http. Argument: the origin.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptrace"
	"os"
	"strings"
	"time"
)

var origin = os.Args[1]
var client = &http.Client{}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// Hides the length of the body, so it is sent in chunks.
type unknownLength struct{ io.Reader }

func ask(method, path string, body io.Reader, fields ...string) (*http.Response, string) {
	request := must(http.NewRequest(method, origin+path, body))
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	reply := must(client.Do(request))
	defer reply.Body.Close()
	return reply, string(must(io.ReadAll(reply.Body)))
}

func text(reply *http.Response, body string) string {
	return fmt.Sprintf("%d %s", reply.StatusCode, body)
}

func main() {
	body := bytes.Repeat([]byte("u"), 200_000)
	reports := map[string]string{}
	client.Jar = must(cookiejar.New(nil))
	client.Transport = &http.Transport{ExpectContinueTimeout: time.Hour}

	reports["get"] = text(ask("GET", "/echo?q=1", nil))
	reports["encoded"] = text(ask("GET", "/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y", nil))
	reports["redirect"] = text(ask("GET", "/redirect?status=302&to=/folder", nil))
	reports["redirect 307"] = text(ask("PUT", "/redirect?status=307&to=/upload", bytes.NewReader(body)))
	reports["cookies"] = text(ask("GET", "/cookies/set", nil))
	reports["upload"] = text(ask("POST", "/upload", bytes.NewReader(body)))
	reports["upload chunked"] = text(ask("POST", "/upload", unknownLength{bytes.NewReader(body)}))
	reports["expect"] = text(ask("POST", "/upload", bytes.NewReader(body), "Expect", "100-continue"))
	for _, framing := range []string{"length", "chunked"} {
		reply, got := ask("GET", "/download/"+framing, nil)
		reports["download "+framing] = fmt.Sprintf("%d %d %s", reply.StatusCode, len(got), got[len(got)-3:])
	}
	head, got := ask("HEAD", "/download/length", nil)
	reports["head"] = fmt.Sprintf("%d %s %d", head.StatusCode, head.Header.Get("Content-Length"), len(got))
	none, got := ask("DELETE", "/none", nil)
	reports["no content"] = fmt.Sprintf("%d %d", none.StatusCode, len(got))
	tagged, _ := ask("GET", "/tagged", nil)
	known, got := ask("GET", "/tagged", nil, "If-None-Match", tagged.Header.Get("ETag"))
	reports["not modified"] = fmt.Sprintf("%d %s %d", known.StatusCode, known.Header.Get("ETag"), len(got))
	part, got := ask("GET", "/range", nil, "Range", "bytes=5-9")
	reports["range"] = fmt.Sprintf("%d %s %s", part.StatusCode, part.Header.Get("Content-Range"), got)
	reports["gzip"] = text(ask("GET", "/gzip", nil))
	reports["refused"] = text(ask("POST", "/refuse", bytes.NewReader(body), "Expect", "100-continue"))
	busy, got := ask("GET", "/busy", nil)
	reports["busy"] = fmt.Sprintf("%d %s %s", busy.StatusCode, busy.Header.Get("Retry-After"), got)

	client.Transport = &http.Transport{}
	connections := 0
	trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		if !info.Reused {
			connections++
		}
	}}
	for i := 0; i < 3; i++ {
		request := must(http.NewRequest("GET", origin+"/echo", nil))
		reply := must(client.Do(request.WithContext(httptrace.WithClientTrace(request.Context(), trace))))
		must(io.Copy(io.Discard, reply.Body))
		reply.Body.Close()
	}
	reports["keep-alive"] = fmt.Sprintf("3 requests, %d connection", connections)

	stream := must(client.Get(origin + "/events"))
	lines := bufio.NewScanner(stream.Body)
	var events []string
	for len(events) < 3 && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "data: ") {
			events = append(events, strings.TrimPrefix(lines.Text(), "data: "))
		}
	}
	stream.Body.Close()
	reports["events"] = strings.Join(events, " ")
	json.NewEncoder(os.Stdout).Encode(reports)
}
