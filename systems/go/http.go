package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"linerate.dev/sdk"
)

// The input read at once, and the longest request.
const httpBuffer = 16_384

var getRequest = []byte("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
var badRequest = []byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

// serveHTTP answers with its own small parser, as the other systems do, or with net/http.
func serveHTTP(spec *sdk.Spec) (*sdk.Done, error) {
	page := sdk.Page(spec.Size)
	switch server := spec.Options["server"]; server {
	case "":
	case "net/http":
		return nil, serveNetHTTP(spec, page)
	default:
		return nil, sdk.BadSpec(`"options.server" must be net/http, not ` + server)
	}
	return nil, sdk.Serve(spec, answers(page))
}

// answers is the side of the server with the small parser.
func answers(page []byte) func(net.Conn) {
	answer := func(connection string) []byte {
		head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: %s\r\n\r\n", len(page), connection)
		return append([]byte(head), page...)
	}
	keep, last := answer("keep-alive"), answer("close")
	return func(connection net.Conn) {
		buffer, filled := make([]byte, httpBuffer), 0
		for {
			n, err := connection.Read(buffer[filled:])
			if err != nil {
				return
			}
			filled += n
			used := 0
			for used < filled {
				request := parse(buffer[used:filled])
				if request.state == incomplete && filled-used < httpBuffer {
					break
				}
				if request.state != good {
					_, _ = connection.Write(badRequest)
					return
				}
				used += request.length
				if !request.keep {
					_, _ = connection.Write(last)
					return
				}
				if _, err := connection.Write(keep); err != nil {
					return
				}
			}
			filled = copy(buffer, buffer[used:filled])
		}
	}
}

// fetch requests the page and compares it; it returns the kind of failure, or "".
func fetch(on sdk.Channel, page []byte) string {
	if err := on.Send(getRequest); err != nil {
		return sdk.StreamError(err, 0)
	}
	var received []byte
	for {
		piece, err := on.Receive()
		if err != nil {
			return sdk.StreamError(err, len(received))
		}
		// The answer is one piece, as a rule, and is parsed in place.
		if received != nil {
			piece = append(received, piece...)
		}
		body, kind := parseAnswer(piece)
		if kind == "" && !bytes.Equal(body, page) {
			return "wrong_content"
		}
		if kind != "incomplete" {
			return kind
		}
		received = bytes.Clone(piece)
	}
}

// parseAnswer returns the body of the answer at the start of the input, or "incomplete", or the kind of failure.
func parseAnswer(input []byte) (body []byte, kind string) {
	head, rest, whole := bytes.Cut(input, []byte("\r\n\r\n"))
	if !whole {
		return nil, "incomplete"
	}
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	status, versioned := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !versioned {
		return nil, "malformed"
	}
	if !bytes.HasPrefix(status, []byte("200 ")) {
		return nil, "wrong_status"
	}
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, _ := bytes.Cut(field, []byte(":"))
		if !bytes.EqualFold(name, []byte("content-length")) {
			continue
		}
		length, err := strconv.Atoi(string(bytes.TrimSpace(value)))
		if err != nil || length < 0 {
			return nil, "malformed"
		}
		if len(rest) < length {
			return nil, "incomplete"
		}
		return rest[:length], ""
	}
	return nil, "malformed"
}

// serveNetHTTP is the server of the standard library, with its defaults.
func serveNetHTTP(spec *sdk.Spec, page []byte) error {
	terminated := sdk.Terminated()
	listener, err := sdk.Listen(spec)
	if err != nil {
		return err
	}
	length := strconv.Itoa(len(page))
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Length", length)
		_, _ = w.Write(page)
	})}
	go func() {
		<-terminated
		_ = server.Close()
	}()
	if err := server.Serve(listener); err != http.ErrServerClosed {
		return err
	}
	return nil
}

const (
	incomplete = iota
	good
	bad
)

type request struct {
	state, length int
	keep          bool
}

// parse parses one GET request at the start of the input (RFC 9112). Anything else is bad.
func parse(input []byte) request {
	end := bytes.Index(input, []byte("\r\n\r\n"))
	if end < 0 {
		return request{state: incomplete}
	}
	line, fields, _ := bytes.Cut(input[:end+2], []byte("\r\n"))
	if !bytes.HasPrefix(line, []byte("GET ")) || bytes.Count(line, []byte(" ")) != 2 {
		return request{state: bad}
	}
	newer := bytes.HasSuffix(line, []byte(" HTTP/1.1"))
	if !newer && !bytes.HasSuffix(line, []byte(" HTTP/1.0")) {
		return request{state: bad}
	}
	closes, keeps := false, false
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, colon := bytes.Cut(field, []byte(":"))
		if !colon || len(name) == 0 || bytes.ContainsAny(name, " \t") {
			return request{state: bad}
		}
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("connection")):
			for _, token := range bytes.Split(value, []byte(",")) {
				token = bytes.TrimSpace(token)
				closes = closes || bytes.EqualFold(token, []byte("close"))
				keeps = keeps || bytes.EqualFold(token, []byte("keep-alive"))
			}
		case bytes.EqualFold(name, []byte("content-length")) && string(value) != "0",
			bytes.EqualFold(name, []byte("transfer-encoding")):
			return request{state: bad}
		}
	}
	return request{state: good, length: end + 4, keep: !closes && (newer || keeps)}
}
