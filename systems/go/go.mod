module linerate.dev/systems/go

go 1.19

require linerate.dev/sdk v0.0.0

replace linerate.dev/sdk => ../../sdk/go
