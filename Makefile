# Forwards to Meson and ninja, nothing more: the build itself is described in meson.build.
BUILD ?= build
ASAN = build-asan
TSAN = build-tsan

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
tsan: $(TSAN)/build.ninja
	scripts/test $(TSAN) --suite threads --timeout-multiplier 10
bench: all
	$(BUILD)/smoe bench
bench-kernels: $(BUILD)/build.ninja
	ninja -C $(BUILD) bench-kernels
bench-attention: $(BUILD)/build.ninja
	ninja -C $(BUILD) bench-attention
bench-tokenizer: $(BUILD)/build.ninja
	ninja -C $(BUILD) bench/bench-tokenizer
	$(BUILD)/bench/bench-tokenizer $(FILES)
install: all
	meson install -C $(BUILD) --no-rebuild
clean:
	rm -rf $(BUILD) $(ASAN) $(TSAN)

$(BUILD)/build.ninja:
	meson setup $(BUILD)
# A finding of a sanitizer ends the program, so that a test cannot pass over it.
$(ASAN)/build.ninja:
	meson setup $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false \
	  -Dc_args=-fno-sanitize-recover=all
$(TSAN)/build.ninja:
	meson setup $(TSAN) -Db_sanitize=thread -Db_lundef=false

.PHONY: all model chat test quick asan tsan bench bench-kernels bench-attention bench-tokenizer \
  install clean
