package official_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/PaddleHQ/paddle-go-sdk/v4/pkg/paddlenotification"
	adyen "github.com/adyen/adyen-go-api-library/v21/src/webhook"
	goshopify "github.com/bold-commerce/go-shopify/v4"
	"github.com/google/go-github/v90/github"
	"github.com/mailgun/mailgun-go/v5/events"
	"github.com/mailgun/mailgun-go/v5/mtypes"
	"github.com/slack-go/slack/slackevents"
	"github.com/square/square-go-sdk"
	"github.com/stripe/stripe-go/v86"
)

// readStripe reads the object of the event too, into the type of its own.
func readStripe(r *request) ([]fact, error) {
	var event stripe.Event
	if err := json.Unmarshal(r.Body, &event); err != nil {
		return nil, err
	}
	var object any
	switch event.Data.Object["object"] {
	case "charge":
		object = new(stripe.Charge)
	case "payment_intent":
		object = new(stripe.PaymentIntent)
	case "invoice":
		object = new(stripe.Invoice)
	case "subscription":
		object = new(stripe.Subscription)
	case "checkout.session":
		object = new(stripe.CheckoutSession)
	case "customer":
		object = new(stripe.Customer)
	default:
		return nil, fmt.Errorf("object is %v", event.Data.Object["object"])
	}
	return []fact{{event.ID, string(event.Type)}}, json.Unmarshal(event.Data.Raw, object)
}

// readShopify reads the order; id and topic stand in headers, of which the library has no notion.
func readShopify(r *request) ([]fact, error) {
	var order goshopify.Order
	if err := json.Unmarshal(r.Body, &order); err != nil {
		return nil, err
	}
	if order.Id == 0 || order.Name == "" || order.TotalPrice == nil || len(order.LineItems) == 0 {
		return nil, errors.New("order has no id, name, price or items")
	}
	return []fact{{r.Header.Get("X-Shopify-Event-Id"), r.Header.Get("X-Shopify-Topic")}}, nil
}

func readGitHub(r *request) ([]fact, error) {
	in := r.http()
	kind := github.WebHookType(in)
	event, err := github.ParseWebHook(kind, r.Body)
	if err != nil {
		return nil, err
	}
	if acts, ok := event.(interface{ GetAction() string }); ok && acts.GetAction() != "" {
		kind += "." + acts.GetAction()
	}
	return []fact{{github.DeliveryID(in), kind}}, nil
}

func readSlack(r *request) ([]fact, error) {
	event, err := slackevents.ParseEvent(r.Body, slackevents.OptionNoVerifyToken())
	if err != nil {
		return nil, err
	}
	outer, ok := event.Data.(*slackevents.EventsAPICallbackEvent)
	if !ok {
		return nil, fmt.Errorf("data is %T", event.Data)
	}
	return []fact{{outer.EventID, event.InnerEvent.Type}}, nil
}

func readSquare(r *request) ([]fact, error) {
	var event square.Event
	if err := json.Unmarshal(r.Body, &event); err != nil {
		return nil, err
	}
	if event.EventID == nil || event.Type == nil || event.Data == nil || len(event.Data.Object) != 1 {
		return nil, errors.New("event has no id, type or data")
	}
	return []fact{{*event.EventID, *event.Type}}, nil
}

func readMailgun(r *request) ([]fact, error) {
	var payload mtypes.WebhookPayload
	if err := json.Unmarshal(r.Body, &payload); err != nil {
		return nil, err
	}
	event, err := events.ParseEvent(payload.EventData)
	if err != nil {
		return nil, err
	}
	return []fact{{event.GetID(), event.GetName()}}, nil
}

// readAdyen makes the id as Adyen says that duplicates are known: by event code and PSP reference.
func readAdyen(r *request) ([]fact, error) {
	notification, err := adyen.HandleRequest(string(r.Body))
	if err != nil {
		return nil, err
	}
	var facts []fact
	for _, item := range notification.GetNotificationItems() {
		facts = append(facts, fact{item.EventCode + ":" + item.PspReference, item.EventCode})
	}
	return facts, nil
}

// readPaddle reads the event into the type of its own.
func readPaddle(r *request) ([]fact, error) {
	var event paddlenotification.GenericNotificationEvent
	if err := json.Unmarshal(r.Body, &event); err != nil {
		return nil, err
	}
	var notification any
	switch event.EventType {
	case paddlenotification.EventTypeNameTransactionCompleted:
		notification = new(paddlenotification.TransactionCompleted)
	case paddlenotification.EventTypeNameTransactionUpdated:
		notification = new(paddlenotification.TransactionUpdated)
	case paddlenotification.EventTypeNameSubscriptionCreated:
		notification = new(paddlenotification.SubscriptionCreated)
	case paddlenotification.EventTypeNameSubscriptionUpdated:
		notification = new(paddlenotification.SubscriptionUpdated)
	case paddlenotification.EventTypeNameCustomerCreated:
		notification = new(paddlenotification.CustomerCreated)
	case paddlenotification.EventTypeNameCustomerUpdated:
		notification = new(paddlenotification.CustomerUpdated)
	case paddlenotification.EventTypeNameAddressCreated:
		notification = new(paddlenotification.AddressCreated)
	case paddlenotification.EventTypeNameAddressUpdated:
		notification = new(paddlenotification.AddressUpdated)
	case paddlenotification.EventTypeNameAdjustmentCreated:
		notification = new(paddlenotification.AdjustmentCreated)
	case paddlenotification.EventTypeNameAdjustmentUpdated:
		notification = new(paddlenotification.AdjustmentUpdated)
	default:
		return nil, fmt.Errorf("event type is %q", event.EventType)
	}
	return []fact{{event.EventID, string(event.EventType)}}, json.Unmarshal(r.Body, notification)
}
