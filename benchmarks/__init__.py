"""Speed of attnlab beside what the arithmetic allows and beside what a user would take instead; see ``README.md`` here."""
