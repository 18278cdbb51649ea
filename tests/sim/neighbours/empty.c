/* A library of which only the name matters. */
int spillway_test_neighbour(void);

int spillway_test_neighbour(void)
{
    return 0;
}
