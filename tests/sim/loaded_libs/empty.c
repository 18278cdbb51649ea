/* A library of which only the name matters. */
int spillway_test_library(void);

int spillway_test_library(void)
{
    return 0;
}
