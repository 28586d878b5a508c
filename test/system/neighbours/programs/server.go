package main

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	mux := http.NewServeMux()
	mux.Handle("/files/", http.StripPrefix("/files/", http.FileServer(http.Dir("files"))))
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/octet-stream")
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "a part")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	// The names of projects and queues are one segment, with their slashes encoded.
	segments := func(w http.ResponseWriter, r *http.Request) {
		json.NewEncoder(w).Encode(strings.Split(r.URL.EscapedPath(), "/"))
	}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			segments(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})))
}
