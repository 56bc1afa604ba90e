package lineproto

// Telnet's bytes (RFC 854). A telnet client may negotiate at any time, and does on
// Ctrl-C. The negotiation does not concern the protocol.
const (
	telSE   = 240
	telSB   = 250
	telWILL = 251
	telDO   = 253
	telDONT = 254
	telIAC  = 255
	// telTimingMark is an option. A client sends DO TIMING-MARK after Ctrl-C (RFC 860), and shows nothing more until
	// the answer.
	telTimingMark = 6
)

// telnet skips negotiation: IAC and a command, IAC WILL..DONT and an option, IAC SB ...
// IAC SE. It also skips an escaped data byte, IAC IAC, because no request holds the
// byte 255. Its value is the position within a sequence at the end of the input. So a
// sequence may be split over reads and have any length without being kept.
type telnet uint8

const (
	telNone    telnet = iota // outside
	telCommand               // after IAC
	telOption                // after IAC WILL, WONT or DONT
	telAfterDO               // after IAC DO
	telSub                   // within IAC SB
	telSubIAC                // within it, after IAC
)

// skip returns how many bytes at the front of in belong to the sequence that is under
// way, or that begins with in[0], an IAC. If t is not telNone afterwards, the sequence
// continues behind in. mark reports whether the sequence that ends there asks for a timing mark.
func (t *telnet) skip(in []byte) (n int, mark bool) {
	for i, c := range in {
		switch *t {
		case telNone:
			*t = telCommand
			continue
		case telCommand:
			switch {
			case c == telSB:
				*t = telSub
				continue
			case c == telDO:
				*t = telAfterDO
				continue
			case c >= telWILL && c <= telDONT:
				*t = telOption
				continue
			}
		case telOption:
		case telAfterDO:
			mark = c == telTimingMark
		case telSub:
			if c == telIAC {
				*t = telSubIAC
			}
			continue
		case telSubIAC:
			if c != telSE {
				*t = telSub
				continue
			}
		}
		*t = telNone
		return i + 1, mark
	}
	return len(in), false
}

// answerTelnet appends the answers to the timing marks that the client has asked for.
func (p *lineParser) answerTelnet(out []byte) []byte {
	for ; p.marks > 0; p.marks-- {
		out = append(out, telIAC, telWILL, telTimingMark)
	}
	return out
}
