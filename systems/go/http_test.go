package main

import "testing"

func TestRequestsAreParsedAsGetIncompleteOrBad(t *testing.T) {
	get := "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for input, want := range map[string]request{
		get:                      {good, len(get), true},
		get + "GET":              {good, len(get), true},
		get[:len(get)-1]:         {state: incomplete},
		"GET / HTTP/1.0\r\n\r\n": {good, 18, false},
		"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n": {good, 37, false},
		"POST / HTTP/1.1\r\n\r\n":                     {state: bad},
		"GET / HTTP/1.1\r\nContent-Length: 5\r\n\r\n": {state: bad},
		"GET / HTTP/1.1\r\nno colon\r\n\r\n":          {state: bad},
	} {
		if got := parse([]byte(input)); got != want {
			t.Errorf("%q is %+v, not %+v", input, got, want)
		}
	}
}
