CREATE TABLE "requests" (
	"request_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL,
	"operation" text NOT NULL,
	"app" text NOT NULL,
	"brand" text,
	"channel" text,
	"recipient" text,
	"recipients" integer,
	"recipient_hash" text COLLATE "C",
	"limits" text NOT NULL,
	"status" integer,
	"error" text,
	"message" text,
	"duration_ms" integer,
	"attempt_at" bigint,
	"provider" text,
	"outcome" text,
	"attempt_duration_ms" integer,
	"route" text,
	"template" text,
	"position" integer,
	"segments" integer,
	"encoding" text,
	"error_class" text,
	"reason" text,
	"provider_message_id" text,
	"report_key" text COLLATE "C",
	CONSTRAINT "requests_operation" CHECK ("requests"."operation" IN ('send', 'resend', 'verify', 'notify')),
	CONSTRAINT "requests_channel" CHECK ("requests"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "requests_outcome" CHECK ("requests"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
);
--> statement-breakpoint
CREATE TABLE "attempts" (
	"request_id" text COLLATE "C" NOT NULL,
	"attempt" integer NOT NULL,
	"at" bigint NOT NULL,
	"app" text NOT NULL,
	"brand" text,
	"channel" text NOT NULL,
	"recipient" text NOT NULL,
	"recipient_hash" text COLLATE "C" NOT NULL,
	"provider" text NOT NULL,
	"outcome" text NOT NULL,
	"duration_ms" integer NOT NULL,
	"route" text,
	"template" text,
	"position" integer,
	"segments" integer,
	"encoding" text,
	"error_class" text,
	"reason" text,
	"provider_message_id" text,
	"report_key" text COLLATE "C",
	CONSTRAINT "attempts_request_id_attempt_pk" PRIMARY KEY("request_id","attempt"),
	CONSTRAINT "attempts_channel" CHECK ("attempts"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "attempts_outcome" CHECK ("attempts"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
);
--> statement-breakpoint
-- A story was a JSON array: at, operation, app, brand, channel, recipient, recipients, limits, end, recipient hash. A limit
-- in it was [limit, max, used, endsAt, refused], the end [status, error, message, durationMs]. The limits
-- become text: limit used/max until expiry refused, separated by commas.
INSERT INTO "requests" (
	"request_id", "at", "operation", "app", "brand", "channel", "recipient", "recipients", "recipient_hash", "limits",
	"status", "error", "message", "duration_ms", "attempt_at", "provider", "outcome", "attempt_duration_ms", "route",
	"template", "position", "segments", "encoding", "error_class", "reason", "provider_message_id", "report_key"
)
SELECT DISTINCT ON ("request_id")
	"request_id", ("story" ->> 0)::bigint, "story" ->> 1, "story" ->> 2, "story" ->> 3,
	coalesce("story" ->> 4, "channel"), coalesce("story" ->> 5, "recipient"), ("story" ->> 6)::integer,
	coalesce("recipient_hash", "story" ->> 9),
	coalesce(
		(
			SELECT string_agg(
				("value" ->> 0) || ' ' || coalesce("value" ->> 2, '?') || '/' || ("value" ->> 1)
				|| coalesce(' until ' || ("value" ->> 3), '') || CASE WHEN "value" ->> 4 = '1' THEN ' refused' ELSE '' END,
				', ' ORDER BY "place")
			FROM jsonb_array_elements("story" -> 7) WITH ORDINALITY AS "each" ("value", "place")
		),
		''
	),
	("story" #>> '{8,0}')::integer, "story" #>> '{8,1}', "story" #>> '{8,2}', ("story" #>> '{8,3}')::integer,
	"deliveries"."at", "provider", "outcome", "duration_ms", "route", "template", "position", "segments", "encoding",
	"error_class", "reason", "vendor_id", "receipt_key"
FROM "stories" LEFT JOIN (SELECT * FROM "deliveries" WHERE "attempt" = 1) AS "deliveries" USING ("request_id");
--> statement-breakpoint
INSERT INTO "attempts" (
	"request_id", "attempt", "at", "app", "brand", "channel", "recipient", "recipient_hash", "provider", "outcome",
	"duration_ms", "route", "template", "position", "segments", "encoding", "error_class", "reason",
	"provider_message_id", "report_key"
)
SELECT DISTINCT ON ("request_id", "attempt")
	"request_id", "attempt", "at", "app", "brand", "channel", "recipient", "recipient_hash", "provider", "outcome",
	"duration_ms", "route", "template", "position", "segments", "encoding", "error_class", "reason", "vendor_id",
	"receipt_key"
FROM "deliveries"
WHERE "attempt" > 1 OR NOT EXISTS (SELECT FROM "stories" WHERE "stories"."request_id" = "deliveries"."request_id");
--> statement-breakpoint
DROP TABLE "stories";--> statement-breakpoint
DROP TABLE "deliveries";--> statement-breakpoint
-- After the rows, which is quicker than before them.
CREATE INDEX "requests_by_recipient" ON "requests" USING btree ("recipient_hash","request_id") WHERE outcome IS NOT NULL;--> statement-breakpoint
CREATE INDEX "attempts_by_recipient" ON "attempts" USING btree ("recipient_hash","request_id");--> statement-breakpoint
ALTER TABLE "receipts" RENAME TO "delivery_reports";--> statement-breakpoint
ALTER TABLE "delivery_reports" RENAME CONSTRAINT "receipts_pkey" TO "delivery_reports_pkey";--> statement-breakpoint
ALTER TABLE "delivery_reports" RENAME CONSTRAINT "receipts_status" TO "delivery_reports_status";--> statement-breakpoint
ALTER INDEX "receipts_by_time" RENAME TO "delivery_reports_by_time";--> statement-breakpoint
ALTER TABLE "tallies" RENAME TO "stats";--> statement-breakpoint
ALTER TABLE "stats" RENAME CONSTRAINT "tallies_part_step_ms_at_kind_channel_brand_provider_detail_pk" TO "stats_part_step_ms_at_kind_channel_brand_provider_detail_pk";--> statement-breakpoint
ALTER INDEX "tallies_by_time" RENAME TO "stats_by_time";--> statement-breakpoint
DROP FUNCTION otpost_keep_entries(jsonb, jsonb, int, jsonb, jsonb, jsonb);--> statement-breakpoint
DROP FUNCTION otpost_keep_receipts(text, jsonb, jsonb, int, jsonb);--> statement-breakpoint
DROP FUNCTION otpost_count(jsonb, int, jsonb);
