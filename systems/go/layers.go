package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"time"

	"github.com/gorilla/websocket"
	"linerate.dev/sdk"
)

const longestMessage = 16 << 20

// channel is an sdk.Channel with an orderly close, which waits for the peer's.
type channel interface {
	sdk.Channel
	close()
}

// connect is the client's setup of an established connection. It returns the channel and a description of its TLS, or the kind of
// failure.
type connect func(net.Conn) (made channel, described, failure string)

func isSecure(spec *sdk.Spec) bool    { return spec.Layer == "tls" || spec.Layer == "wss" }
func isWebSocket(spec *sdk.Spec) bool { return spec.Layer == "websocket" || spec.Layer == "wss" }

// byteChannel is a socket or TLS.
type byteChannel struct{ *sdk.ByteChannel }

func (c byteChannel) close() {
	if secured, ok := c.Conn.(*tls.Conn); ok && secured.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, secured)
	}
	_ = c.Conn.Close()
}

// serve serves echoes and streams on any layer.
func serve(spec *sdk.Spec) (*sdk.Done, error) {
	config, err := serverConfig(spec)
	if err != nil {
		return nil, err
	}
	service, err := sdk.NewService(spec)
	if err != nil {
		return nil, err
	}
	handle := func(on channel) {
		// A client that closes in order gets an orderly close; one that vanishes ends its own connection only.
		if service.Serve(on) == io.EOF {
			on.close()
		}
	}
	if isWebSocket(spec) {
		return nil, serveWebSockets(spec, config, handle)
	}
	return nil, sdk.Serve(spec, func(connection net.Conn) {
		if config != nil {
			connection = tls.Server(connection, config)
		}
		handle(byteChannel{service.Channel(connection)})
	})
}

// handler is the server's side of connections that a client in the same process makes.
func handler(spec *sdk.Spec) (func(net.Conn), error) {
	if spec.Layer == "http" {
		return answers(sdk.Page(spec.Size)), nil
	}
	service, err := sdk.NewService(spec)
	return func(connection net.Conn) { _ = service.Serve(service.Channel(connection)) }, err
}

// serverConfig is nil on layers without TLS.
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
	if spec.Layer == "tcp" || spec.Layer == "http" {
		size := spec.Size
		if spec.Layer == "http" {
			size = httpBuffer
		}
		return func(connection net.Conn) (channel, string, string) {
			return byteChannel{sdk.NewByteChannel(connection, size)}, "", ""
		}, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, ServerName: spec.TLS.Name, RootCAs: x509.NewCertPool()}
	if isSecure(spec) && (spec.TLS.Name == "" || !config.RootCAs.AppendCertsFromPEM([]byte(spec.TLS.Authority))) {
		return nil, sdk.BadSpec(`a client needs "tls.authority" and "tls.name"`)
	}
	buffer, err := bufferSize(spec)
	return func(connection net.Conn) (channel, string, string) {
		_ = connection.SetDeadline(time.Now().Add(spec.Timeout()))
		made, described, failure := shake(connection, spec, config, buffer)
		_ = connection.SetDeadline(time.Time{})
		return made, described, failure
	}, err
}

// bufferSize is that of gorilla's buffers in bytes; 0, the default: 4 KiB.
func bufferSize(spec *sdk.Spec) (int, error) {
	text, there := spec.Options["websocket-buffer"]
	if !there {
		return 0, nil
	}
	size, err := strconv.Atoi(text)
	if err != nil || size < 1 || size > longestMessage {
		return 0, sdk.BadSpec(fmt.Sprintf(`"options.websocket-buffer" must be 1 to %d, not %s`, longestMessage, text))
	}
	return size, nil
}

// shake makes the handshakes of TLS and WebSocket.
func shake(connection net.Conn, spec *sdk.Spec, config *tls.Config, buffer int) (made channel, described, failure string) {
	host := spec.Connect
	if isSecure(spec) {
		secured := tls.Client(connection, config)
		if err := secured.Handshake(); err != nil {
			return nil, "", handshakeError(err, "tls_failed")
		}
		state := secured.ConnectionState()
		// Go cannot be set to one cipher suite of TLS 1.3: another than the contract's is a failure, not another measurement.
		if state.CipherSuite != tls.TLS_AES_128_GCM_SHA256 {
			return nil, "", "tls_failed"
		}
		described = "TLSv1.3 " + tls.CipherSuiteName(state.CipherSuite) + " crypto/tls " + runtime.Version()
		connection, host = secured, spec.TLS.Name
	}
	if !isWebSocket(spec) {
		return byteChannel{sdk.NewByteChannel(connection, spec.Size)}, described, ""
	}
	dialer := websocket.Dialer{
		// The connection is there, with TLS if the layer has it.
		NetDial:         func(string, string) (net.Conn, error) { return connection, nil },
		ReadBufferSize:  buffer,
		WriteBufferSize: buffer,
	}
	socket, _, err := dialer.Dial("ws://"+host+"/", nil)
	if errors.Is(err, websocket.ErrBadHandshake) {
		return nil, "", "wrong_status"
	}
	if err != nil {
		return nil, "", handshakeError(err, sdk.StreamError(err, 0))
	}
	return newWebSocket(socket), described, ""
}

// handshakeError is connect_timeout where the handshake took too long, else this kind.
func handshakeError(err error, kind string) string {
	if sdk.ConnectError(err) == "connect_timeout" {
		return "connect_timeout"
	}
	return kind
}

// webSocket is gorilla's connection; a message is one binary message.
type webSocket struct{ *websocket.Conn }

func newWebSocket(connection *websocket.Conn) channel {
	connection.SetReadLimit(longestMessage)
	return webSocket{connection}
}

// serveWebSockets is net/http with gorilla's Upgrader, as in its examples: the handler's goroutine serves the connection.
func serveWebSockets(spec *sdk.Spec, config *tls.Config, handle func(channel)) error {
	buffer, err := bufferSize(spec)
	if err != nil {
		return err
	}
	terminated := sdk.Terminated()
	listener, err := sdk.Listen(spec)
	if err != nil {
		return err
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	upgrader := websocket.Upgrader{ReadBufferSize: buffer, WriteBufferSize: buffer}
	answer := func(w http.ResponseWriter, r *http.Request) {
		// The Upgrader answers requests that are no upgrade.
		if socket, err := upgrader.Upgrade(w, r, nil); err == nil {
			defer socket.Close()
			handle(newWebSocket(socket))
		}
	}
	server := http.Server{Handler: http.HandlerFunc(answer), ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = server.Serve(listener) }()
	<-terminated
	return nil
}

func (w webSocket) Send(message []byte) error {
	return w.WriteMessage(websocket.BinaryMessage, message)
}

func (w webSocket) Receive() ([]byte, error) {
	_, message, err := w.ReadMessage()
	if websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		err = io.EOF
	}
	return message, err
}

func (w webSocket) close() {
	normal := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	if w.WriteMessage(websocket.CloseMessage, normal) == nil {
		_, _, _ = w.ReadMessage()
	}
	_ = w.Conn.Close()
}
