/* The language of policy files, for machines and for people, from the table that the parser uses.
 */
#pragma once

/* Prints the JSON Schema that is policies/policy.schema.json. */
void spw_cli_policy_print_schema(void);

/* Prints the Markdown tables of the keys that stand in policies/README.md. */
void spw_cli_policy_print_keys(void);
