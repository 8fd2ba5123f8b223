module linerate.dev/systems/quic-go

go 1.26.0

toolchain go1.26.8

require linerate.dev/sdk v0.0.0

require github.com/quic-go/quic-go v0.65.0

require (
	golang.org/x/crypto v0.54.0 // indirect
	golang.org/x/net v0.56.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
)

replace linerate.dev/sdk => ../../sdk/go
