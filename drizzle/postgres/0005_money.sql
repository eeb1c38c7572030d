CREATE TABLE "alert_deliveries" (
	"key" text COLLATE "C" NOT NULL,
	"channel" text NOT NULL,
	"tries" integer NOT NULL,
	"due_at" bigint NOT NULL,
	CONSTRAINT "alert_deliveries_key_channel_pk" PRIMARY KEY("key","channel"),
	CONSTRAINT "alert_deliveries_channel" CHECK ("alert_deliveries"."channel" IN ('email', 'webhook'))
);
--> statement-breakpoint
CREATE TABLE "alerts" (
	"key" text COLLATE "C" PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL,
	"kind" text NOT NULL,
	"title" text NOT NULL,
	"text" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "app_brands" (
	"app_id" text COLLATE "C" NOT NULL,
	"brand_slug" text COLLATE "C" NOT NULL,
	CONSTRAINT "app_brands_app_id_brand_slug_pk" PRIMARY KEY("app_id","brand_slug")
);
--> statement-breakpoint
CREATE TABLE "apps" (
	"app_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"allows_otp" boolean NOT NULL,
	"allows_notify" boolean NOT NULL,
	"per_minute" integer
);
--> statement-breakpoint
CREATE TABLE "budgets" (
	"scope" text COLLATE "C" PRIMARY KEY NOT NULL,
	"period" text NOT NULL,
	"amount_micros" bigint NOT NULL,
	"currency" text NOT NULL,
	"alert_at" jsonb NOT NULL,
	"stops" boolean NOT NULL,
	"lifted_until" bigint,
	"counts_from" bigint NOT NULL,
	CONSTRAINT "budgets_period" CHECK ("budgets"."period" IN ('day', 'month')),
	CONSTRAINT "budgets_alerts" CHECK (jsonb_typeof("budgets"."alert_at") = 'array')
);
--> statement-breakpoint
CREATE TABLE "destination_rules" (
	"rule" text COLLATE "C" NOT NULL,
	"brand_slug" text COLLATE "C" NOT NULL,
	"action" text NOT NULL,
	"providers" jsonb NOT NULL,
	"sender" text,
	"route" text,
	CONSTRAINT "destination_rules_rule_brand_slug_pk" PRIMARY KEY("rule","brand_slug"),
	CONSTRAINT "destination_rules_action" CHECK ("destination_rules"."action" IN ('allow', 'monitor', 'block')),
	CONSTRAINT "destination_rules_route" CHECK ("destination_rules"."route" IN ('plain', 'template')),
	CONSTRAINT "destination_rules_providers" CHECK (jsonb_typeof("destination_rules"."providers") = 'array')
);
--> statement-breakpoint
CREATE TABLE "guard_buckets" (
	"kind" text NOT NULL,
	"key" text COLLATE "C" NOT NULL,
	"node" text COLLATE "C" NOT NULL,
	"level" double precision NOT NULL,
	"sent" double precision NOT NULL,
	"verified" double precision NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "guard_buckets_kind_key_node_pk" PRIMARY KEY("kind","key","node")
);
--> statement-breakpoint
CREATE TABLE "guard_prefixes" (
	"prefix" text COLLATE "C" NOT NULL,
	"by" text NOT NULL,
	"action" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "guard_prefixes_prefix_by_pk" PRIMARY KEY("prefix","by"),
	CONSTRAINT "guard_prefixes_by" CHECK ("guard_prefixes"."by" IN ('guard', 'operator')),
	CONSTRAINT "guard_prefixes_action" CHECK ("guard_prefixes"."action" IN ('allow', 'block'))
);
--> statement-breakpoint
CREATE TABLE "prices" (
	"prefix" text COLLATE "C" NOT NULL,
	"provider" text COLLATE "C" NOT NULL,
	"price_micros" bigint NOT NULL,
	"currency" text NOT NULL,
	CONSTRAINT "prices_prefix_provider_pk" PRIMARY KEY("prefix","provider")
);
--> statement-breakpoint
CREATE TABLE "verified_numbers" (
	"subject" text COLLATE "C" PRIMARY KEY NOT NULL,
	"verified_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "codes_and_limits" ALTER COLUMN "count" SET DATA TYPE bigint;--> statement-breakpoint
ALTER TABLE "attempts" ADD COLUMN "country" text;--> statement-breakpoint
ALTER TABLE "codes_and_limits" ADD COLUMN "provider_message_id" text;--> statement-breakpoint
ALTER TABLE "requests" ADD COLUMN "reference" text;--> statement-breakpoint
ALTER TABLE "requests" ADD COLUMN "guard" text;--> statement-breakpoint
ALTER TABLE "requests" ADD COLUMN "country" text;--> statement-breakpoint
CREATE INDEX "guard_buckets_by_time" ON "guard_buckets" USING btree ("updated_at");