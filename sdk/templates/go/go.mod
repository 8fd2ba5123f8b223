module linerate.dev/systems/NAME

go 1.19

require linerate.dev/sdk v0.0.0

replace linerate.dev/sdk => ../../sdk/go
