package sdk

import (
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

const (
	// An echo server reads up to this many bytes at once, the same in every system.
	echoBuffer = 65_536
	// Wait after a failed accept, such as one without a free descriptor.
	acceptRetry = 10 * time.Millisecond
)

// Channel carries messages of rr and streams: a socket, TLS, or a WebSocket on either.
type Channel interface {
	Send(message []byte) error
	// Receive returns a message, or the bytes of one read; valid until the next call.
	Receive() ([]byte, error)
}

// ByteChannel is a socket or TLS.
type ByteChannel struct {
	net.Conn
	buffer []byte
}

// NewByteChannel reads up to size bytes at once, and at least a number.
func NewByteChannel(connection net.Conn, size int) *ByteChannel {
	if size < numberSize {
		size = numberSize
	}
	return &ByteChannel{connection, make([]byte, size)}
}

// Send writes all bytes.
func (c *ByteChannel) Send(message []byte) error {
	_, err := c.Write(message)
	return err
}

// Receive returns the bytes of one read.
func (c *ByteChannel) Receive() ([]byte, error) {
	n, err := c.Read(c.buffer)
	if n > 0 {
		err = nil
	}
	return c.buffer[:n], err
}

// CloseWrite ends the sending side of the connection, and keeps the receiving side open.
func (c *ByteChannel) CloseWrite() error {
	if connection, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return connection.CloseWrite()
	}
	return errors.New("this connection has no half-close")
}

// Service is the server's side of one connection: an echo (rr, crr, fanout) or streams.
type Service struct{ stream *Stream }

// NewService returns the service of the spec's workload.
func NewService(spec *Spec) (*Service, error) {
	switch spec.Workload {
	case "rr", "crr", "fanout":
		return &Service{}, nil
	case "stream":
		stream, err := NewStream(spec)
		return &Service{stream}, err
	}
	return nil, Unsupported("workload " + spec.Workload)
}

// Channel reads from a connection as the service needs it.
func (s *Service) Channel(connection net.Conn) *ByteChannel {
	if s.stream == nil {
		return NewByteChannel(connection, echoBuffer)
	}
	return NewByteChannel(connection, s.stream.size)
}

// Serve serves a connection until its end, which is io.EOF if the peer closed in order.
func (s *Service) Serve(channel Channel) error {
	if s.stream != nil {
		return s.stream.serve(channel)
	}
	for {
		message, err := channel.Receive()
		if err == nil {
			err = channel.Send(message)
		}
		if err != nil {
			return err
		}
	}
}

// Terminated receives SIGTERM.
func Terminated() <-chan os.Signal {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	return terminated
}

// Listen opens the spec's TCP listener and prints that it is ready.
func Listen(spec *Spec) (net.Listener, error) {
	if spec.Listen == "" {
		return nil, BadSpec(`"listen" is missing`)
	}
	listener, err := net.Listen("tcp", spec.Listen)
	if err != nil {
		return nil, err
	}
	Ready(listener.Addr().String())
	return listener, nil
}

// ServeBeside serves TCP connections in the process of their client, which connects to the listener: both ends in one loop.
func ServeBeside(spec *Spec, handle func(net.Conn)) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err == nil {
		spec.Connect = listener.Addr().String()
		go Accept(listener, handle)
	}
	return err
}

// Accept runs a goroutine for each connection, as the documentation of package net does. TCP_NODELAY is net's default.
func Accept(listener net.Listener, handle func(net.Conn)) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			time.Sleep(acceptRetry)
			continue
		}
		go func() {
			// A peer that vanishes ends its own connection only.
			defer connection.Close()
			handle(connection)
		}()
	}
}

// Serve serves TCP connections until SIGTERM.
func Serve(spec *Spec, handle func(net.Conn)) error {
	terminated := Terminated()
	listener, err := Listen(spec)
	if err == nil {
		go Accept(listener, handle)
		<-terminated
	}
	return err
}
