package reports

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// look is how a shape of some class is painted in a picture; the page has its style sheet for that. A nil colour paints nothing.
type look struct {
	fill, stroke color.Color
	width        float64
	dash         []float64
	// hatch: stripes instead of a full area.
	hatch bool
	size  float64
	bold  bool
}

// palette is the light theme of the page.
type palette struct{ fg, muted, line, soft, blue, green, amber, red, grey, area, hatch color.Color }

func light() palette {
	rgb := func(n uint32) color.Color { return color.NRGBA{uint8(n >> 16), uint8(n >> 8), uint8(n), 255} }
	return palette{
		fg: rgb(0x1d2126), muted: rgb(0x545d68), line: rgb(0xe2e4e7), soft: rgb(0xf1f2f3), blue: rgb(0x2c6bd6), green: rgb(0x23875a),
		amber: rgb(0xb3720f), red: rgb(0xc8312f), grey: rgb(0x8d96a1), area: rgb(0xdfe3e8), hatch: rgb(0xc4cad1),
	}
}

// veil is a colour that lets what lies under it shine through.
func veil(c color.Color, alpha uint8) color.Color {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = alpha
	return n
}

// lookOf is the look of a class. A class that is for the page only, as what reacts to hovering, has none.
func lookOf(class string, p palette) look {
	switch class {
	case "grid":
		return look{stroke: p.line, width: 1}
	case "grid minor":
		return look{stroke: p.line, width: 1, dash: []float64{1, 4}}
	case "base":
		return look{stroke: p.grey, width: 1}
	case "offered":
		return look{fill: veil(p.area, 184)}
	case "acked", "ack":
		return look{stroke: p.blue, fill: p.blue, width: 1.8}
	case "applied", "effect":
		return look{stroke: p.green, fill: p.green, width: 1.8}
	case "backlog":
		return look{stroke: p.amber, width: 1.8}
	case "backlog-area":
		return look{fill: veil(p.amber, 40)}
	case "fault", "key-fault":
		return look{fill: veil(p.red, 36)}
	case "fault unmet":
		return look{stroke: p.red, width: 1, dash: []float64{3, 3}}
	case "leader":
		return look{stroke: veil(p.red, 140), width: 1}
	}
	if of, ok := strings.CutPrefix(class, "limit"); ok {
		return limitLook(of, p)
	}
	return otherLook(class, p)
}

// limitLook is that of a limit's line, its end and its name, in the colour of the curve that it is for.
func limitLook(of string, p palette) look {
	c := p.blue
	if strings.HasSuffix(of, "effect") {
		c = p.green
	}
	switch {
	case strings.HasPrefix(of, "end"):
		return look{stroke: c, width: 2.5}
	case strings.HasPrefix(of, "name"):
		return look{fill: c, size: 11.5}
	default:
		return look{stroke: c, width: 1.3, dash: []float64{5, 4}}
	}
}

// otherLook has the stripes, the keys of the legend and the texts.
func otherLook(class string, p palette) look {
	switch class {
	case "fast":
		return look{stroke: veil(p.hatch, 150), width: 1.2, hatch: true}
	case "key-fast":
		return look{stroke: p.hatch, width: 1.2, hatch: true}
	case "key-acked", "key-ack":
		return look{fill: p.blue}
	case "key-applied", "key-effect":
		return look{fill: p.green}
	case "key-backlog":
		return look{fill: p.amber}
	case "key-offered":
		return look{fill: p.area}
	case "key-limit":
		return look{stroke: p.muted, width: 1.2, dash: []float64{3, 3}}
	case "tick":
		return look{fill: p.muted, size: 11.5}
	case "segmentname":
		return look{fill: p.fg, size: 11.5}
	case "axis":
		return look{fill: p.muted, size: 12}
	case "legend":
		return look{fill: p.fg, size: 12}
	case "title":
		return look{fill: p.fg, size: 15, bold: true}
	case "faultname":
		return look{fill: p.red, size: 11.5}
	}
	if strings.HasPrefix(class, "segment") {
		switch {
		case strings.HasSuffix(class, "hatched"):
			return look{stroke: p.hatch, width: 1.2, hatch: true}
		case strings.HasSuffix(class, "tinted"):
			return look{fill: p.area}
		}
		return look{fill: p.soft, stroke: p.line, width: 1}
	}
	return look{}
}

// painter paints a scene, whose y grows downward, on a canvas, whose y grows upward.
type painter struct {
	c     vg.Canvas
	h     float64
	fonts *font.Cache
	look  look
}

func paint(c vg.Canvas, s *scene, fonts *font.Cache) {
	p := &painter{c: c, h: s.H, fonts: fonts, look: look{fill: color.White}}
	p.rect(shape{W: s.W, H: s.H})
	colours := light()
	for _, s := range s.Shapes {
		p.look = lookOf(s.Class, colours)
		switch s.Kind {
		case "rect":
			p.rect(s)
		case "line":
			p.stroke(p.path([]point{{s.X, s.Y}, {s.X + s.W, s.Y + s.H}}, false))
		case "path":
			p.shape(p.path(s.Points, s.Closed), s.Closed)
		case "dot":
			p.dot(s)
		case "text":
			p.text(s)
		}
	}
}

func (p *painter) at(q point) vg.Point {
	return vg.Point{X: vg.Length(q.x) * pixel, Y: vg.Length(p.h-q.y) * pixel}
}

func (p *painter) path(corners []point, closed bool) vg.Path {
	var path vg.Path
	for i, q := range corners {
		if i == 0 {
			path.Move(p.at(q))
		} else {
			path.Line(p.at(q))
		}
	}
	if closed {
		path.Close()
	}
	return path
}

func (p *painter) fill(path vg.Path) {
	if p.look.fill != nil {
		p.c.SetColor(p.look.fill)
		p.c.Fill(path)
	}
}

func (p *painter) stroke(path vg.Path) {
	if p.look.stroke == nil {
		return
	}
	dash := make([]vg.Length, len(p.look.dash))
	for i, d := range p.look.dash {
		dash[i] = vg.Length(d) * pixel
	}
	p.c.SetColor(p.look.stroke)
	p.c.SetLineWidth(vg.Length(p.look.width) * pixel)
	p.c.SetLineDash(dash, 0)
	p.c.Stroke(path)
}

// shape fills what is closed and strokes what is not.
func (p *painter) shape(path vg.Path, closed bool) {
	if closed {
		p.fill(path)
	} else {
		p.stroke(path)
	}
}

func (p *painter) rect(s shape) {
	if p.look.hatch {
		p.hatch(s)
		return
	}
	path := p.path([]point{{s.X, s.Y}, {s.X + s.W, s.Y}, {s.X + s.W, s.Y + s.H}, {s.X, s.Y + s.H}}, true)
	p.fill(path)
	p.stroke(path)
}

// hatch draws the stripes of a rectangle, cut off at its edges.
func (p *painter) hatch(s shape) {
	const distance = 9
	first := s.X - s.H
	// Stripes of neighbours continue each other.
	first -= float64(int(first) % distance)
	for x := first; x < s.X+s.W; x += distance {
		from, to := max(x, s.X), min(x+s.H, s.X+s.W)
		if to > from {
			p.stroke(p.path([]point{{from, s.Y + s.H - (from - x)}, {to, s.Y + s.H - (to - x)}}, false))
		}
	}
}

func (p *painter) dot(s shape) {
	const radius, kink = 3.2, 0.5523
	x, y, r, k := s.X, s.Y, radius, radius*kink
	var path vg.Path
	path.Move(p.at(point{x + r, y}))
	path.CubeTo(p.at(point{x + r, y + k}), p.at(point{x + k, y + r}), p.at(point{x, y + r}))
	path.CubeTo(p.at(point{x - k, y + r}), p.at(point{x - r, y + k}), p.at(point{x - r, y}))
	path.CubeTo(p.at(point{x - r, y - k}), p.at(point{x - k, y - r}), p.at(point{x, y - r}))
	path.CubeTo(p.at(point{x + k, y - r}), p.at(point{x + r, y - k}), p.at(point{x + r, y}))
	path.Close()
	p.fill(path)
}

func (p *painter) text(s shape) {
	if p.look.fill == nil || s.Text == "" {
		return
	}
	f := font.Font{Typeface: "Liberation", Variant: "Sans"}
	if p.look.bold {
		f.Weight = xfont.WeightBold
	}
	face := p.fonts.Lookup(f, vg.Length(p.look.size)*pixel)
	at := p.at(point{s.X, s.Y})
	switch s.Anchor {
	case "middle":
		at.X -= face.Width(s.Text) / 2
	case "end":
		at.X -= face.Width(s.Text)
	}
	p.c.SetColor(p.look.fill)
	p.c.FillString(face, at, s.Text)
}
