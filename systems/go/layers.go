package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"runtime"

	"github.com/gorilla/websocket"
	"linerate.dev/sdk"
)

const longestMessage = 16 << 20

// connect is a client's half of what comes before the first byte of a workload: the channel and what TLS it has, or the
// kind of failure.
type connect func(net.Conn) (made channel, described, failure string)

func isSecure(spec *sdk.Spec) bool    { return spec.Layer == "tls" || spec.Layer == "wss" }
func isWebSocket(spec *sdk.Spec) bool { return spec.Layer == "websocket" || spec.Layer == "wss" }

// serverConfig is nil where the layer has no TLS.
func serverConfig(spec *sdk.Spec) (*tls.Config, error) {
	if !isSecure(spec) {
		return nil, nil
	}
	pair, err := tls.X509KeyPair([]byte(spec.TLS.Certificate), []byte(spec.TLS.Key))
	if err != nil {
		return nil, sdk.BadSpec(`"tls.certificate" and "tls.key": ` + err.Error())
	}
	certificates := []tls.Certificate{pair}
	return &tls.Config{MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true, Certificates: certificates}, nil
}

func connector(spec *sdk.Spec) (connect, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: spec.TLS.Name, RootCAs: x509.NewCertPool()}
	if isSecure(spec) && (spec.TLS.Name == "" || !config.RootCAs.AppendCertsFromPEM([]byte(spec.TLS.Authority))) {
		return nil, sdk.BadSpec(`a client needs "tls.authority" and "tls.name"`)
	}
	return func(connection net.Conn) (channel, string, string) {
		described, host := "", spec.Connect
		if isSecure(spec) {
			secured := tls.Client(connection, config)
			if err := secured.Handshake(); err != nil {
				return nil, "", refused(err, "tls_failed")
			}
			state := secured.ConnectionState()
			// Go does not let one choose the cipher of TLS 1.3: another than the contract's is a failure, not another measurement.
			if state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
				return nil, "", "tls_failed"
			}
			described = "TLSv1.3 " + tls.CipherSuiteName(state.CipherSuite) + " crypto/tls " + runtime.Version()
			connection, host = secured, spec.TLS.Name
		}
		if !isWebSocket(spec) {
			return newByteChannel(connection, spec), described, ""
		}
		socket, _, err := websocket.NewClient(connection, &url.URL{Scheme: "ws", Host: host, Path: "/"}, nil, 0, 0)
		if errors.Is(err, websocket.ErrBadHandshake) {
			return nil, "", "wrong_status"
		}
		if err != nil {
			return nil, "", refused(err, sdk.StreamError(err, 0))
		}
		return newWebSocket(socket), described, ""
	}, nil
}

// refused is the kind of a handshake's failure: that it took too long, or what it is otherwise.
func refused(err error, otherwise string) string {
	if kind := sdk.ConnectError(err); kind == "connect_timeout" {
		return kind
	}
	return otherwise
}

func newByteChannel(connection net.Conn, spec *sdk.Spec) channel {
	size := spec.Size
	if size < 8 {
		size = 8
	}
	return &byteChannel{connection, make([]byte, size)}
}

// webSocket is gorilla's connection; a message is one binary message.
type webSocket struct{ *websocket.Conn }

func newWebSocket(connection *websocket.Conn) channel {
	connection.SetReadLimit(longestMessage)
	return webSocket{connection}
}

// serveWebSockets is net/http with gorilla's Upgrader, as its examples have it: the handler's goroutine is the connection's.
func serveWebSockets(spec *sdk.Spec, config *tls.Config, handle func(channel)) (*sdk.Done, error) {
	listener, terminated, err := listen(spec)
	if err != nil {
		return nil, err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	upgrader := websocket.Upgrader{}
	answer := func(w http.ResponseWriter, r *http.Request) {
		// What is no upgrade is answered by the Upgrader.
		if socket, err := upgrader.Upgrade(w, r, nil); err == nil {
			defer socket.Close()
			handle(newWebSocket(socket))
		}
	}
	server := http.Server{Handler: http.HandlerFunc(answer), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	<-terminated
	return nil, nil
}

func (w webSocket) send(message []byte) error {
	return w.WriteMessage(websocket.BinaryMessage, message)
}

func (w webSocket) receive() ([]byte, error) {
	_, message, err := w.ReadMessage()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		err = io.EOF
	}
	return message, err
}

func (w webSocket) echo() error {
	for {
		message, err := w.receive()
		if err == nil {
			err = w.send(message)
		}
		if err != nil {
			return err
		}
	}
}

func (w webSocket) close() {
	normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if w.WriteMessage(websocket.CloseMessage, normal) == nil {
		_, _, _ = w.ReadMessage()
	}
	_ = w.Conn.Close()
}
