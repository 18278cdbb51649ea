/* Throws through a few frames and catches; for the test that compares symbol bindings. */
#include <cstdio>
#include <stdexcept>
#include <string>

static int depth(int n)
{
    std::string text = "frame " + std::to_string(n);

    if (n == 0) {
        throw std::runtime_error(text);
    }
    return depth(n - 1) + 1;
}

int main()
{
    try {
        std::printf("%d\n", depth(5));
    } catch (const std::exception &error) {
        std::printf("caught: %s\n", error.what());
    }
    return 0;
}
