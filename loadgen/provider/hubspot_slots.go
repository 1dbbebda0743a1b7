package provider

import "strconv"

// change is one item of a HubSpot request.
type change struct {
	e       Event
	attempt int
	// class is an index into objectClasses.
	class uint64
}

func changeOf(e Event, attempt int) change {
	return change{e: e, attempt: attempt, class: draw(e.ResourceDraw, 1) % uint64(len(objectClasses))}
}

// objectClass is a type of CRM record and the sixteen of its properties that the app listens to.
type objectClass struct {
	name       string
	properties [16]property
}

// property is a property and what its values look like: a number, a word, a date in milliseconds, text or a mail address.
type property struct {
	name  string
	value valueStyle
}

type valueStyle uint8

const (
	numeric valueStyle = iota
	word
	date
	prose
	mail
)

// objectClasses are HubSpot's default properties (https://knowledge.hubspot.com/properties/hubspots-default-contact-properties, November 2026).
var objectClasses = []objectClass{
	{"contact", [16]property{
		{"lifecyclestage", word}, {"email", mail}, {"hs_lead_status", word}, {"firstname", prose}, {"hubspotscore", numeric}, {"phone", numeric}, {"lastmodifieddate", date}, {"notes_last_contacted", date},
		{"city", prose}, {"num_associated_deals", numeric}, {"hs_email_open", numeric}, {"jobtitle", prose}, {"closedate", date}, {"total_revenue", numeric}, {"message", prose}, {"hs_persona", word},
	}},
	{"company", [16]property{
		{"lifecyclestage", word}, {"annualrevenue", numeric}, {"numberofemployees", numeric}, {"industry", word}, {"name", prose}, {"hs_lead_status", word}, {"description", prose}, {"notes_last_updated", date},
		{"num_contacted_notes", numeric}, {"city", prose}, {"closedate", date}, {"hs_num_open_deals", numeric}, {"type", word}, {"about_us", prose}, {"days_to_close", numeric}, {"hs_lastmodifieddate", date},
	}},
	{"deal", [16]property{
		{"dealstage", word}, {"amount", numeric}, {"closedate", date}, {"dealname", prose}, {"pipeline", word}, {"hs_priority", word}, {"hs_forecast_amount", numeric}, {"hs_lastmodifieddate", date},
		{"num_notes", numeric}, {"description", prose}, {"dealtype", word}, {"hs_deal_stage_probability", numeric}, {"hs_next_step", prose}, {"notes_last_updated", date}, {"closed_lost_reason", prose}, {"days_to_close", numeric},
	}},
}

var stages = []string{
	"lead", "marketingqualifiedlead", "salesqualifiedlead", "opportunity", "customer", "appointmentscheduled", "qualifiedtobuy", "presentationscheduled", "contractsent", "closedwon", "closedlost", "high", "medium", "NEW", "IN_PROGRESS",
}

var changeSources = []string{"CRM_UI", "CRM_UI", "INTEGRATION", "IMPORT", "API", "AUTOMATION_PLATFORM", "FORM", "EMAIL"}

func (c *change) eventType() string {
	if c.e.Version <= 1 {
		return objectClasses[c.class].name + ".creation"
	}
	return objectClasses[c.class].name + ".propertyChange"
}

// slotOfClass is the index of the changed property. Consecutive versions change different ones.
func (c *change) slotOfClass() uint64 { return uint64(c.e.Version) % 16 }

// property is empty for a creation.
func (c *change) property() string {
	if c.e.Version <= 1 {
		return ""
	}
	return objectClasses[c.class].properties[c.slotOfClass()].name
}

// subscription is the id of the subscription that listens to this class and property: HubSpot has one for each.
func (c *change) subscription() uint64 {
	if c.e.Version <= 1 {
		return 2_614_100 + c.class
	}
	return 2_614_110 + c.class*16 + c.slotOfClass()
}

// object holds 48 bits of the resource's key: two of a million resources meet in one of them with a chance of 1 in 500, and then still differ in time.
func (c *change) object() uint64 { return 1 + draw(c.e.ResourceKey, 2)>>16 }

// occurredAt is the payload clock in milliseconds. As in [shown], each version adds one, so that it grows with the version also within a millisecond.
func (c *change) occurredAt() int64 { return c.e.At.UnixMilli() + int64(max(c.e.Version, 1)-1) }

// changeSlots names everything that an item's templates leave open.
func changeSlots() map[string]slot[change] {
	return map[string]slot[change]{
		"event_id":        number(func(c *change) uint64 { return draw(c.e.Key, 3) % 4_000_000_000 }),
		"subscription_id": number((*change).subscription),
		"portal_id":       number(func(c *change) uint64 { return 20_000_000 + draw(draw(c.e.ResourceDraw, 4)%240, 5)%28_000_000 }),
		"app_id":          number(func(*change) uint64 { return hubspotApp }),
		"occurred_at":     func(dst []byte, c *change) []byte { return strconv.AppendInt(dst, c.occurredAt(), 10) },
		"type":            words((*change).eventType),
		"attempt":         number(func(c *change) uint64 { return uint64(max(c.attempt, 1) - 1) }),
		"object_id":       number((*change).object),
		"property":        words((*change).property),
		"value":           appendValue,
		"source":          words(func(c *change) string { return pick(changeSources, draw(c.e.Draw, 6)) }),
		"source_id": func(dst []byte, c *change) []byte {
			return strconv.AppendUint(append(dst, "userId:"...), among(draw(c.e.Draw, 7)%300, 48_000_000, 48_000_299), 10)
		},
	}
}

// appendValue appends a new value for the property. HubSpot sends every value as a string.
func appendValue(dst []byte, c *change) []byte {
	r := draw(c.e.Draw, 8)
	switch objectClasses[c.class].properties[c.slotOfClass()].value {
	case numeric:
		return strconv.AppendUint(dst, r%1_000_000, 10)
	case word:
		return append(dst, pick(stages, r)...)
	case date:
		return strconv.AppendInt(dst, c.e.At.UnixMilli()/86_400_000*86_400_000+int64(r%90)*86_400_000, 10)
	case mail:
		return appendEmail(dst, pick(givenNames, r), pick(familyNames, r>>16), r>>32)
	default:
		dst = append(append(append(dst, pick(adjectives, r)...), ' '), pick(products, r>>16)...)
		return append(dst, pick([]string{"", "", ` [hot]`, ` {Q4}`, ` \"A\"`, ` ], [`, ` \\`}, r>>32)...)
	}
}
