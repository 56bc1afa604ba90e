package ownclock

import "encoding/binary"

// assemble returns the content of the code page: three addresses, and machineCode, which uses
// them. The addresses are those of the offsets and of two vDSO functions in the program.
func assemble(offsets, clockGettime, gettimeofday uint64) []byte {
	var page []byte
	for _, addr := range []uint64{offsets, clockGettime, gettimeofday} {
		page = binary.LittleEndian.AppendUint64(page, addr)
	}
	return append(page, machineCode...)
}

// entryPoints are the offsets, within the code page, of the functions that replace those of the
// vDSO.
var entryPoints = map[string]uint64{"clock_gettime": 0x18, "gettimeofday": 0x83, "time": 0xb3}

// machineCode follows three addresses of eight bytes each: at 0x00 that of the offsets, at 0x08
// clock_gettime, at 0x10 gettimeofday. The first of the offsets applies to the wall clock alone,
// the second to all clocks. The code obeys the C calling convention, including the alignment of
// the stack before a call. The comments give the offset of each instruction in the page.
var machineCode = []byte{
	// clock_gettime(rdi: clock, rsi: timespec)
	0x57,                   // 18: push rdi
	0x56,                   // 19: push rsi
	0x48, 0x83, 0xec, 0x08, // 1a: sub rsp, 8
	0xff, 0x15, 0xe4, 0xff, 0xff, 0xff, // 1e: call [0x08]
	0x48, 0x83, 0xc4, 0x08, // 24: add rsp, 8
	0x5e,       // 28: pop rsi
	0x5f,       // 29: pop rdi
	0x85, 0xc0, // 2a: test eax, eax
	0x75, 0x54, // 2c: jne 82: it failed
	0x83, 0xff, 0x07, // 2e: cmp edi, 7
	0x77, 0x4f, // 31: ja 82
	0xb9, 0xf3, 0x00, 0x00, 0x00, // 33: mov ecx, 11110011b: CLOCK_REALTIME, _MONOTONIC, _MONOTONIC_RAW,
	0x0f, 0xa3, 0xf9, // 38: bt ecx, edi: _REALTIME_COARSE, _MONOTONIC_COARSE, _BOOTTIME
	0x73, 0x45, // 3b: jnc 82: none of these
	0x48, 0x8b, 0x15, 0xbc, 0xff, 0xff, 0xff, // 3d: mov rdx, [0x00]
	0x48, 0x8b, 0x42, 0x08, // 44: mov rax, [rdx+8]: of all clocks
	0xb9, 0x21, 0x00, 0x00, 0x00, // 48: mov ecx, 00100001b
	0x0f, 0xa3, 0xf9, // 4d: bt ecx, edi: CLOCK_REALTIME, _REALTIME_COARSE
	0x73, 0x03, // 50: jnc 55
	0x48, 0x03, 0x02, // 52: add rax, [rdx]: of the wall clock
	0xb9, 0x00, 0xca, 0x9a, 0x3b, // 55: mov ecx, 1000000000
	// Add rax to the time at [rsi]. rax counts units of 1/rcx s and may be negative.
	0x48, 0x99, // 5a: cqo
	0x48, 0xf7, 0xf9, // 5c: idiv rcx
	0x48, 0x03, 0x06, // 5f: add rax, [rsi]
	0x48, 0x03, 0x56, 0x08, // 62: add rdx, [rsi+8]
	0x79, 0x06, // 66: jns 6e
	0x48, 0x01, 0xca, // 68: add rdx, rcx
	0x48, 0xff, 0xc8, // 6b: dec rax
	0x48, 0x39, 0xca, // 6e: cmp rdx, rcx
	0x7c, 0x06, // 71: jl 79
	0x48, 0x29, 0xca, // 73: sub rdx, rcx
	0x48, 0xff, 0xc0, // 76: inc rax
	0x48, 0x89, 0x06, // 79: mov [rsi], rax
	0x48, 0x89, 0x56, 0x08, // 7c: mov [rsi+8], rdx
	0x31, 0xc0, // 80: xor eax, eax
	0xc3, // 82: ret

	// gettimeofday(rdi: timeval or 0, rsi: timezone)
	0x57,                               // 83: push rdi
	0xff, 0x15, 0x86, 0xff, 0xff, 0xff, // 84: call [0x10]
	0x5e,       // 8a: pop rsi
	0x85, 0xc0, // 8b: test eax, eax
	0x75, 0xf3, // 8d: jne 82: it failed
	0x48, 0x85, 0xf6, // 8f: test rsi, rsi
	0x74, 0xee, // 92: je 82: only the timezone was asked for
	0x48, 0x8b, 0x15, 0x65, 0xff, 0xff, 0xff, // 94: mov rdx, [0x00]
	0x48, 0x8b, 0x42, 0x08, // 9b: mov rax, [rdx+8]
	0x48, 0x03, 0x02, // 9f: add rax, [rdx]
	0xb9, 0xe8, 0x03, 0x00, 0x00, // a2: mov ecx, 1000
	0x48, 0x99, // a7: cqo
	0x48, 0xf7, 0xf9, // a9: idiv rcx: microseconds
	0xb9, 0x40, 0x42, 0x0f, 0x00, // ac: mov ecx, 1000000
	0xeb, 0xa7, // b1: jmp 5a

	// time(rdi: where to put it as well, or 0)
	0x57,                   // b3: push rdi
	0x48, 0x83, 0xec, 0x10, // b4: sub rsp, 16
	0xbf, 0x05, 0x00, 0x00, 0x00, // b8: mov edi, 5: CLOCK_REALTIME_COARSE, as it always was
	0x48, 0x89, 0xe6, // bd: mov rsi, rsp
	0xe8, 0x53, 0xff, 0xff, 0xff, // c0: call 18
	0x58,             // c5: pop rax: the seconds
	0x59,             // c6: pop rcx
	0x5f,             // c7: pop rdi
	0x48, 0x85, 0xff, // c8: test rdi, rdi
	0x74, 0x03, // cb: je d0
	0x48, 0x89, 0x07, // cd: mov [rdi], rax
	0xc3, // d0: ret
}
