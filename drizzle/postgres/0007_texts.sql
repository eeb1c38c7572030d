CREATE TABLE "review_numbers" (
	"subject" text COLLATE "C" NOT NULL,
	"brand_slug" text COLLATE "C" NOT NULL,
	"keyed_code" text NOT NULL,
	"masked" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "review_numbers_subject_brand_slug_pk" PRIMARY KEY("subject","brand_slug")
);
--> statement-breakpoint
CREATE TABLE "text_variables" (
	"brand_slug" text COLLATE "C" NOT NULL,
	"template_key" text COLLATE "C" NOT NULL,
	"position" integer NOT NULL,
	"name" text NOT NULL,
	"type" text NOT NULL,
	"max" bigint NOT NULL,
	CONSTRAINT "text_variables_brand_slug_template_key_position_pk" PRIMARY KEY("brand_slug","template_key","position"),
	CONSTRAINT "text_variables_type" CHECK ("text_variables"."type" IN ('text', 'number', 'date', 'datetime', 'url'))
);
--> statement-breakpoint
CREATE TABLE "texts" (
	"brand_slug" text COLLATE "C" NOT NULL,
	"template_key" text COLLATE "C" NOT NULL,
	"channel" text NOT NULL,
	"lang" text COLLATE "C" NOT NULL,
	"subject" text,
	"text" text NOT NULL,
	"html" text,
	"version" integer NOT NULL,
	"updated_at" bigint NOT NULL,
	CONSTRAINT "texts_brand_slug_template_key_channel_lang_pk" PRIMARY KEY("brand_slug","template_key","channel","lang"),
	CONSTRAINT "texts_channel" CHECK ("texts"."channel" IN ('SMS', 'EMAIL'))
);
--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "lang" text DEFAULT 'en' NOT NULL;--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "android_hash" text;--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "logo_url" text;--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "color" text;--> statement-breakpoint
ALTER TABLE "brands" ADD COLUMN "dlt_allow_list" jsonb DEFAULT '[]'::jsonb NOT NULL;