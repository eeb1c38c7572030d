CREATE TABLE `review_numbers` (
	`subject` text NOT NULL,
	`brand_slug` text NOT NULL,
	`keyed_code` text NOT NULL,
	`masked` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `brand_slug`)
) STRICT, WITHOUT ROWID;
