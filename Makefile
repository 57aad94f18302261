# Forwards to Meson and ninja, nothing more: the build itself is described in meson.build.
BUILD ?= build
ASAN = build-asan

all: $(BUILD)/build.ninja
	ninja -C $(BUILD)
model: $(BUILD)/build.ninja
	ninja -C $(BUILD) all model
chat: model
	$(BUILD)/smoe chat
test: all
	scripts/test $(BUILD)
quick: all
	scripts/test $(BUILD) --suite quick --suite lint
asan: $(ASAN)/build.ninja
	ninja -C $(ASAN)
	scripts/test $(ASAN) --timeout-multiplier 5
bench: all
	$(BUILD)/smoe bench
bench-kernels: $(BUILD)/build.ninja
	ninja -C $(BUILD) bench-kernels
bench-tokenizer: $(BUILD)/build.ninja
	ninja -C $(BUILD) bench/bench-tokenizer
	$(BUILD)/bench/bench-tokenizer $(FILES)
install: all
	meson install -C $(BUILD) --no-rebuild
clean:
	rm -rf $(BUILD) $(ASAN)

$(BUILD)/build.ninja:
	meson setup $(BUILD)
# A finding of a sanitizer ends the program, so that a test cannot pass over it.
$(ASAN)/build.ninja:
	meson setup $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false \
	  -Dc_args=-fno-sanitize-recover=all

.PHONY: all model chat test quick asan bench bench-kernels bench-tokenizer install clean
