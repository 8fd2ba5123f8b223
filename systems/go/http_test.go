package main

import "testing"

func TestTheBodyOfAnAnswerHasTheLengthOfItsHead(t *testing.T) {
	answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
	for input, want := range map[string][2]string{
		answer:                    {"ab", ""},
		answer[:len(answer)-1]:    {"", "incomplete"},
		"HTTP/1.1 200":            {"", "incomplete"},
		"HTTP/1.1 200 OK\r\n\r\n": {"", "malformed"},
		"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n": {"", "wrong_status"},
	} {
		if body, kind := parseAnswer([]byte(input)); string(body) != want[0] || kind != want[1] {
			t.Errorf("%q is %q %q, not %q", input, body, kind, want)
		}
	}
}

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
