package main

import (
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"linerate.dev/sdk"
)

const (
	// Input that an echo server reads at once, the same for every system.
	echoBuffer = 65_536
	// When there is no descriptor for a waiting connection.
	rest = 10 * time.Millisecond
)

// serve accepts until SIGTERM, a goroutine for each connection, as the documentation of package net does. TCP_NODELAY is
// net's default.
func serve(spec *sdk.Spec, handle func(*net.TCPConn)) (*sdk.Done, error) {
	listener, terminated, err := listen(spec)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				time.Sleep(rest)
				continue
			}
			go func() {
				// A peer that vanishes ends its connection and nothing else.
				defer connection.Close()
				handle(connection.(*net.TCPConn))
			}()
		}
	}()
	<-terminated
	return nil, nil
}

func listen(spec *sdk.Spec) (net.Listener, <-chan os.Signal, error) {
	if spec.Listen == "" {
		return nil, nil, sdk.BadSpec(`"listen" is missing`)
	}
	terminated := terminate()
	listener, err := net.Listen("tcp", spec.Listen)
	if err != nil {
		return nil, nil, err
	}
	sdk.Ready(listener.Addr().String())
	return listener, terminated, nil
}

func terminate() <-chan os.Signal {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	return terminated
}

func serveEcho(spec *sdk.Spec) (*sdk.Done, error) {
	return serve(spec, func(connection *net.TCPConn) { _ = echo(connection) })
}

// echo sends back what comes until the peer is gone.
func echo(connection net.Conn) error {
	buffer := make([]byte, echoBuffer)
	for {
		n, err := connection.Read(buffer)
		if err != nil {
			return err
		}
		if _, err := connection.Write(buffer[:n]); err != nil {
			return err
		}
	}
}
