/* Reference of the policy language, from the table that the parser uses. No locking. */
#pragma once

/* Prints the JSON Schema; policies/policy.schema.json is its output. */
void spw_cli_policy_print_schema(void);

/* Prints Markdown tables of the keys; policies/README.md contains its output. */
void spw_cli_policy_print_keys(void);
