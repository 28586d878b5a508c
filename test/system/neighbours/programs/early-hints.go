package main

import ("io"; "net/http"; "os")

func main() {
	http.ListenAndServe("127.0.0.1:" + os.Args[1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Link", "</style.css>; rel=preload; as=style")
		w.WriteHeader(103)
		w.WriteHeader(102)
		w.Header().Del("Link")
		w.Header().Set("X-Final", "yes")
		io.WriteString(w, "go")
	}))
}
