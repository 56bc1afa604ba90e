package ownclock

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// vdso describes the vDSO of a tracee. All addresses are those in the tracee.
type vdso struct {
	base        uint64              // added to the addresses in the ELF image
	instruction uint64              // the address of a syscall instruction
	functions   map[string]function // by the name of their symbol
}

// function is a function of the vDSO.
type function struct {
	addr  uint64
	entry uint64 // the address of the symbol's value
}

// giveClock makes the tracee, stopped at its exec, read its clocks through our machine code. fd
// is the descriptor, in the tracee, of the file with the offsets. giveClock maps the file into
// the tracee and closes fd there.
func (t tracee) giveClock(fd int) error {
	v, err := t.vdso()
	if err != nil {
		return err
	}
	offsets, err := t.call(v.instruction, unix.SYS_MMAP, 0, pageSize, unix.PROT_READ, unix.MAP_SHARED, uint64(fd), 0)
	if err != nil {
		return err
	}
	if _, err := t.call(v.instruction, unix.SYS_CLOSE, uint64(fd)); err != nil {
		return err
	}
	const nowhere = ^uint64(0)
	code, err := t.call(v.instruction, unix.SYS_MMAP, 0, pageSize, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, nowhere, 0)
	if err != nil {
		return err
	}
	clockGettime, gettimeofday := v.functions["__vdso_clock_gettime"], v.functions["__vdso_gettimeofday"]
	if clockGettime.addr == 0 || gettimeofday.addr == 0 {
		return errors.New("its vDSO has not the functions that are expected there")
	}
	if err := t.write(code, assemble(offsets, clockGettime.addr, gettimeofday.addr)); err != nil {
		return err
	}
	for name, at := range entryPoints {
		for _, symbol := range []string{"__vdso_" + name, name} {
			f, ok := v.functions[symbol]
			if !ok {
				continue
			}
			value := binary.LittleEndian.AppendUint64(nil, code+at-v.base)
			if err := t.write(f.entry, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// vdso finds the tracee's vDSO and reads its symbols.
func (t tracee) vdso() (*vdso, error) {
	const sysinfoEhdr = 33 // AT_SYSINFO_EHDR
	head, err := t.auxiliary(sysinfoEhdr)
	if err != nil {
		return nil, err
	}
	const most = 1 << 20 // limit for the reader, which stops after the headers
	image := io.NewSectionReader(t, int64(head), most)
	file, err := elf.NewFile(image)
	if err != nil {
		return nil, fmt.Errorf("its vDSO: %w", err)
	}
	if file.Machine != elf.EM_X86_64 || file.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("it is not a 64-bit program: its vDSO is %s %s", file.Machine, file.Class)
	}
	v := &vdso{functions: map[string]function{}}
	for _, p := range file.Progs {
		if p.Type == elf.PT_LOAD {
			v.base = head + p.Off - p.Vaddr
		}
	}
	table, text := file.Section(".dynsym"), file.Section(".text")
	symbols, err := file.DynamicSymbols()
	if err != nil || table == nil || text == nil {
		return nil, fmt.Errorf("its vDSO has no symbols: %w", err)
	}
	const valueAt = 8 // in a symbol, after its name, type and section
	for i, s := range symbols {
		entry := v.base + table.Addr + uint64(i+1)*elf.Sym64Size // DynamicSymbols leaves out the first
		v.functions[s.Name] = function{addr: v.base + s.Value, entry: entry + valueAt}
	}
	code, err := text.Data()
	if err != nil {
		return nil, fmt.Errorf("its vDSO: %w", err)
	}
	// Every vDSO has a syscall instruction, for clocks that it cannot read itself. (The same
	// two bytes within a longer instruction serve as well.)
	at := bytes.Index(code, []byte{0x0f, 0x05})
	if at < 0 {
		return nil, errors.New("its vDSO makes no system calls")
	}
	v.instruction = v.base + text.Addr + uint64(at)
	return v, nil
}

// auxiliary returns the value that the kernel gave the tracee under the tag at its exec.
func (t tracee) auxiliary(tag uint64) (uint64, error) {
	pairs, err := os.ReadFile(fmt.Sprintf("/proc/%d/auxv", t.pid))
	if err != nil {
		return 0, err
	}
	for ; len(pairs) >= 16; pairs = pairs[16:] {
		if binary.LittleEndian.Uint64(pairs) == tag {
			return binary.LittleEndian.Uint64(pairs[8:]), nil
		}
	}
	return 0, errors.New("the kernel has given it no vDSO")
}
