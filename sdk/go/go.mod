module linerate.dev/sdk

go 1.19
