package reports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/font/liberation"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"floodproof/reports/verdict"
	"floodproof/reports/wording"
)

// WritePlots writes latency.svg, latency.png, timeline.svg and timeline.png: the page's two charts as pictures of their own, with title and legend, on
// white. A chart without data says so; the files are there all the same, so that nothing that shows them breaks.
func WritePlots(dir string, r *Report) error {
	fonts := font.NewCache(liberation.Collection())
	var errs []error
	for _, p := range []struct {
		name  string
		scene *scene
	}{{"latency", latencyPicture(r, fonts)}, {"timeline", timePicture(r, fonts)}} {
		errs = append(errs,
			writeFile(filepath.Join(dir, p.name+".svg"), r, func(w io.Writer, _ *Report) error { return writeSVG(w, p.scene, fonts) }),
			writeFile(filepath.Join(dir, p.name+".png"), r, func(w io.Writer, _ *Report) error { return writePNG(w, p.scene, fonts) }),
		)
	}
	return errors.Join(errs...)
}

func latencyPicture(r *Report, fonts *font.Cache) *scene {
	entries := []legend{}
	if r.Ack.TotalCount() > 0 {
		entries = append(entries, legend{"ack", "ack: due to answer"})
	}
	if r.Effect.TotalCount() > 0 {
		entries = append(entries, legend{"effect", "effect: due to effect"})
	}
	if len(r.Header.Expect.Latency) > 0 {
		entries = append(entries, legend{"limit", "limit"})
	}
	return picture(r.Verdict, "latency by percentile", keys(entries, fonts), curveScene(r))
}

func timePicture(r *Report, fonts *font.Cache) *scene {
	entries := []legend{{"offered", "offered attempts"}, {"acked", "acked events"}, {"applied", "applied events"}, {"backlog", "backlog"}}
	if len(r.Verdict.Faults) > 0 {
		entries = append(entries, legend{"fault", "fault"})
	}
	for _, s := range r.Verdict.Segments {
		if s.Scale > 1 {
			entries = append(entries, legend{"fast", "fast-forwarded"})
			break
		}
	}
	return picture(r.Verdict, "time line", keys(entries, fonts), timeScene(r))
}

const margin = 16

// keys lays a legend out in one row.
func keys(entries []legend, fonts *font.Cache) []shape {
	var s scene
	face := fonts.Lookup(font.Font{Typeface: "Liberation", Variant: "Sans"}, 12*pixel)
	x := float64(margin)
	for _, e := range entries {
		s.rect("key-"+e.Class, box{x, 46, 18, 10}, "")
		s.text("legend", x+24, 55, "start", e.Name)
		x += 24 + float64(face.Width(e.Name)/pixel) + 28
	}
	return s.Shapes
}

// picture puts a title and a legend above a chart. Without a chart it says that there is nothing to show.
func picture(v *verdict.Verdict, what string, legend []shape, chart *scene) *scene {
	const head = 66
	s := &scene{W: chartWidth + 2*margin, H: 160}
	s.text("title", margin, 30, "start", wording.Cut(fmt.Sprintf("%s, seed %d: %s, %s", wording.Clean(subject(v)), v.Seed, what, v.Outcome), 110))
	if chart == nil {
		s.text("axis", margin, 90, "start", "Nothing was measured.")
		return s
	}
	s.Shapes = append(s.Shapes, legend...)
	for _, shape := range chart.Shapes {
		shape.X, shape.Y = shape.X+margin, shape.Y+head
		shape.Points = append([]point(nil), shape.Points...)
		for i := range shape.Points {
			shape.Points[i].x += margin
			shape.Points[i].y += head
		}
		s.Shapes = append(s.Shapes, shape)
	}
	s.H = chart.H + head + margin
	return s
}

// pixel is the length of a scene's unit in a picture: 96 to the inch, as on the page.
const pixel = vg.Inch / 96

func writeSVG(w io.Writer, s *scene, fonts *font.Cache) error {
	c := vgsvg.New(vg.Length(s.W)*pixel, vg.Length(s.H)*pixel)
	paint(c, s, fonts)
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return err
	}
	// The canvas names one family; a machine without it would fall back to a serif of other widths. These have its metrics.
	out := bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:'Liberation Sans',Arimo,Helvetica,Arial,sans-serif;"))
	_, err := w.Write(out)
	return err
}

func writePNG(w io.Writer, s *scene, fonts *font.Cache) error {
	c := vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(vg.Length(s.W)*pixel, vg.Length(s.H)*pixel), vgimg.UseDPI(192))}
	paint(c, s, fonts)
	_, err := c.WriteTo(w)
	return err
}
