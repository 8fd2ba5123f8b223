module linerate.dev/systems/go

go 1.19

require linerate.dev/sdk v0.0.0

require github.com/gorilla/websocket v1.5.3

replace linerate.dev/sdk => ../../sdk/go
