package doccheck

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "draw docs/pictures anew with Graphviz (make pictures)")

// Each source in docs/pictures must have its drawing, with the same words. A document must show
// the drawing and describe it. The words are compared rather than the files, because each version
// of Graphviz, and each set of fonts, draws other lines.
func TestPicturesAreCurrentAndShown(t *testing.T) {
	const dir = "../../docs/pictures"
	names := make(map[string]bool)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, ext := strings.TrimSuffix(e.Name(), filepath.Ext(e.Name())), filepath.Ext(e.Name())
		if ext != ".dot" && ext != ".svg" {
			t.Errorf("docs/pictures/%s is no source and no drawing", e.Name())
			continue
		}
		names[name] = true
	}
	if len(names) < 5 {
		t.Errorf("%d pictures found", len(names))
	}
	shown := picturesInDocuments(t)
	for name := range names {
		dot, svg := filepath.Join(dir, name+".dot"), filepath.Join(dir, name+".svg")
		source, err := os.ReadFile(dot)
		if err != nil {
			t.Errorf("docs/pictures/%s.svg has no source: %v", name, err)
			continue
		}
		if *update {
			if err := draw(dot, svg); err != nil {
				t.Fatal(err)
			}
		}
		drawing, err := os.ReadFile(svg)
		if err != nil {
			t.Errorf("docs/pictures/%s.dot has no drawing (make pictures): %v", name, err)
			continue
		}
		for _, problem := range compare(string(source), string(drawing)) {
			t.Errorf("docs/pictures/%s: %s", name, problem)
		}
		alts := shown["docs/pictures/"+name+".svg"]
		if len(alts) == 0 {
			t.Errorf("no document shows docs/pictures/%s.svg", name)
		}
		for _, alt := range alts {
			if len(alt) < 40 {
				t.Errorf("docs/pictures/%s.svg: the text %q does not tell what the picture shows", name, alt)
			}
		}
	}
}

func TestCompareFindsWhatDiffers(t *testing.T) {
	const source = `digraph "All &amp; sundry." {
	a [label=<<B>node A</B>&#160;issues<BR/>from memory>]
	a -> b [label=" one\nwrite"]
}`
	const drawing = `<svg viewBox="0 0 9 9" width="9" role="img">
<title>All &amp; sundry.</title>
<text x="1">node A</text><text x="2">&#160;issues</text><text x="3">from memory</text>
<text x="4"> one</text><text x="5">write</text></svg>`
	for name, c := range map[string]struct {
		old, new string
		want     int
	}{
		"the same":                 {"", "", 0},
		"a word changed":           {"from memory", "from disk", 2},
		"a text missing":           {`<text x="5">write</text>`, "", 1},
		"a text too many":          {"</svg>", "<text>b</text></svg>", 1},
		"a text twice":             {"</svg>", "<text>write</text></svg>", 1},
		"another title":            {"<title>All", "<title>Some", 1},
		"not drawn by make":        {` role="img"`, "", 1},
		"no size":                  {` viewBox="0 0 9 9"`, "", 1},
		"spaces do not count":      {"> one<", ">one <", 0},
		"too wide for a phone":     {"0 0 9 9", "0 0 900 9", 1},
		"lines have another place": {`x="3"`, `x="30"`, 0},
	} {
		if got := compare(source, strings.Replace(drawing, c.old, c.new, 1)); len(got) != c.want {
			t.Errorf("%s: %q, want %d problems", name, got, c.want)
		}
	}
}

var (
	textElement = regexp.MustCompile(`(?s)<text[^>]*>(.*?)</text>`)
	title       = regexp.MustCompile(`(?s)<title>(.*?)</title>`)
	viewBox     = regexp.MustCompile(`<svg [^>]*viewBox="0 0 ([0-9]+) [0-9]+"`)
	graphName   = regexp.MustCompile(`(?m)^digraph "([^"]*)" \{`)
	tag         = regexp.MustCompile(`<[^<>]*>`)
)

// widest is the width in pixels up to which a drawing is readable on a phone.
const widest = 580

// compare returns how a drawing differs from its source.
func compare(source, drawing string) (problems []string) {
	const remedy = ": run make pictures"
	if name := graphName.FindStringSubmatch(source); name == nil {
		problems = append(problems, `the source does not begin with digraph "what the picture shows" {`)
	} else if got := title.FindStringSubmatch(drawing); got == nil || html.UnescapeString(got[1]) != html.UnescapeString(name[1]) {
		problems = append(problems, fmt.Sprintf("the drawing's title is not %q%s", name[1], remedy))
	}
	if !strings.Contains(drawing, `role="img"`) {
		problems = append(problems, "the drawing has not been made by make pictures"+remedy)
	}
	if size := viewBox.FindStringSubmatch(drawing); size == nil {
		problems = append(problems, "the drawing has no viewBox")
	} else if width, _ := strconv.Atoi(size[1]); width > widest {
		problems = append(problems, fmt.Sprintf("the drawing is %d pixels wide. Above %d its words are too small on a phone", width, widest))
	}
	want, err := labels(source)
	if err != nil {
		return append(problems, err.Error())
	}
	var got []string
	for _, m := range textElement.FindAllStringSubmatch(drawing, -1) {
		got = addText(got, m[1])
	}
	for _, s := range want {
		i := slices.Index(got, s)
		if i < 0 {
			problems = append(problems, fmt.Sprintf("the drawing lacks %q%s", s, remedy))
			continue
		}
		got = slices.Delete(got, i, i+1)
	}
	for _, s := range got {
		problems = append(problems, fmt.Sprintf("the source lacks %q, which the drawing has%s", s, remedy))
	}
	return problems
}

// labels returns the texts of all labels of a source, one for each line and each change of font,
// as Graphviz writes them into a drawing.
func labels(source string) (texts []string, err error) {
	const begin = "label="
	for {
		_, rest, found := strings.Cut(source, begin)
		switch source = rest; {
		case !found:
			return texts, nil
		case strings.HasPrefix(rest, `"`):
			quoted, _, closed := strings.Cut(rest[1:], `"`)
			if !closed {
				return nil, errors.New("a label has no end")
			}
			for line := range strings.SplitSeq(quoted, `\n`) {
				texts = addText(texts, line)
			}
		case strings.HasPrefix(rest, "<"):
			end, depth := 0, 0
			for i, r := range rest {
				switch r {
				case '<':
					depth++
				case '>':
					depth--
				}
				if depth == 0 {
					end = i
					break
				}
			}
			if end == 0 {
				return nil, errors.New("a label has no end")
			}
			for _, run := range tag.Split(rest[1:end], -1) {
				texts = addText(texts, run)
			}
		default:
			return nil, fmt.Errorf("a label is neither quoted nor HTML: %.20s", rest)
		}
	}
}

// addText appends a text to texts with single spaces, unless it is blank.
func addText(texts []string, text string) []string {
	text = strings.Join(strings.Fields(html.UnescapeString(text)), " ") // no-break spaces, too
	if text == "" {
		return texts
	}
	return append(texts, text)
}

var image = regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)

// picturesInDocuments returns the descriptions of the pictures that documents show, by the
// path of the picture.
func picturesInDocuments(t *testing.T) map[string][]string {
	t.Helper()
	docs, err := Files("../..")
	if err != nil {
		t.Fatal(err)
	}
	shown := make(map[string][]string)
	for _, doc := range docs {
		for _, m := range image.FindAllStringSubmatch(read(t, doc), -1) {
			path := filepath.ToSlash(filepath.Join(filepath.Dir(doc), m[2]))
			shown[path] = append(shown[path], m[1])
		}
	}
	return shown
}

// draw has Graphviz draw a source, and writes the drawing.
func draw(dot, svg string) error {
	var stderr bytes.Buffer
	command := exec.Command("dot", "-Tsvg", dot)
	command.Stderr = &stderr
	drawing, err := command.Output()
	if err != nil || stderr.Len() > 0 {
		return fmt.Errorf("dot: %w: %s", err, stderr.String())
	}
	done, err := finish(string(drawing))
	if err != nil {
		return fmt.Errorf("%s: %w", dot, err)
	}
	return os.WriteFile(svg, []byte(done), 0o644)
}

var (
	preamble   = regexp.MustCompile(`(?s)<!DOCTYPE.*?>\n|<!--.*?-->\n`)
	svgTag     = regexp.MustCompile(`(?s)<svg width="([0-9]+)pt" height="([0-9]+)pt"\s*viewBox="[^"]*"[^>]*>`)
	background = regexp.MustCompile(`<polygon fill="white" stroke="(?:transparent|none)"[^>]*/>\n`)
	titles     = regexp.MustCompile(`(?s)<title>.*?</title>\n`)
)

// finish makes a drawing of Graphviz fit for a document. A title tells its content. A light
// panel keeps it readable where the page is dark. Its unit is the pixel. The titles of single
// boxes and arrows go: they are names of the source.
func finish(drawing string) (string, error) {
	name := title.FindString(drawing)
	size := svgTag.FindStringSubmatch(drawing)
	if name == "" || size == nil || !background.MatchString(drawing) {
		return "", errors.New("this version of Graphviz writes SVG in another form: change finish")
	}
	width, _ := strconv.Atoi(size[1])
	height, _ := strconv.Atoi(size[2])
	drawing = titles.ReplaceAllString(preamble.ReplaceAllString(drawing, ""), "")
	drawing = background.ReplaceAllString(drawing, "")
	drawing = strings.ReplaceAll(drawing, `stroke="transparent"`, `stroke="none"`)
	drawing = strings.ReplaceAll(drawing, `font-family="DejaVu Sans"`, `font-family="DejaVu Sans,Verdana,Helvetica,Arial,sans-serif"`)
	head := fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
%[3]s
<rect x="0.5" y="0.5" width="%[4]d" height="%[5]d" rx="10" fill="#ffffff" stroke="#d0d7de"/>`,
		width, height, name, width-1, height-1)
	return svgTag.ReplaceAllLiteralString(drawing, head), nil
}
