module llm-platform.local/toolchain/pause

go 1.24.0
