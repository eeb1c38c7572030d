CREATE TABLE `review_numbers` (
	`subject` text NOT NULL,
	`brand_slug` text NOT NULL,
	`keyed_code` text NOT NULL,
	`masked` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `brand_slug`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `text_variables` (
	`brand_slug` text NOT NULL,
	`template_key` text NOT NULL,
	`position` integer NOT NULL,
	`name` text NOT NULL,
	`type` text NOT NULL,
	`max` integer NOT NULL,
	PRIMARY KEY(`brand_slug`, `template_key`, `position`),
	CONSTRAINT "text_variables_type" CHECK("text_variables"."type" IN ('text', 'number', 'date', 'datetime', 'url'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `texts` (
	`brand_slug` text NOT NULL,
	`template_key` text NOT NULL,
	`channel` text NOT NULL,
	`lang` text NOT NULL,
	`subject` text,
	`text` text NOT NULL,
	`html` text,
	`version` integer NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`brand_slug`, `template_key`, `channel`, `lang`),
	CONSTRAINT "texts_channel" CHECK("texts"."channel" IN ('SMS', 'EMAIL'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `brands` ADD `lang` text DEFAULT 'en' NOT NULL;--> statement-breakpoint
ALTER TABLE `brands` ADD `android_hash` text;--> statement-breakpoint
ALTER TABLE `brands` ADD `logo_url` text;--> statement-breakpoint
ALTER TABLE `brands` ADD `color` text;--> statement-breakpoint
ALTER TABLE `brands` ADD `dlt_allow_list` text DEFAULT '[]' NOT NULL;