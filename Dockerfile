# The course in a container, on a CPU:
#   docker build -t values .
#   docker run --name values -p 127.0.0.1:8888:8888 values      prints the address of JupyterLab
#   docker start -ai values                                     goes on, with your work
# The image of Python has make, git and a C++ compiler, which torch.compile asks for.
FROM python:3.13.7@sha256:fe841081ec55481496a4ab25e538833741295d57d2abdec8d38d74d65fb4715b
WORKDIR /values
COPY . .
RUN make setup TORCH=cpu
EXPOSE 8888
CMD ["make", "lab", "LAB_ARGS=--no-browser --ip=0.0.0.0"]
